"""The payload of each kind of report."""

from collections.abc import Mapping
from typing import Final

from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.network import NetworkPayload
from agent.wire.vocabulary import Kind

ReportPayload = NetworkPayload | ApplicationPayload
"""The key ``version`` distinguishes the two models."""

PAYLOADS: Final[Mapping[Kind, type[ReportPayload]]] = {
    "network": NetworkPayload,
    "application": ApplicationPayload,
}
