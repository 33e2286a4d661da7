"""The common fields of both report payloads (contract: Report payload, common fields)."""

from typing import Annotated, Literal

from agent.wire import limits
from agent.wire.base import Count, Exact, MaxItems
from agent.wire.text import PayloadId, PayloadText
from agent.wire.vocabulary import Completeness


class Identity(Exact):
    organization_id: PayloadId
    location_id: PayloadId
    install_id: PayloadId


class Environment(Exact):
    """The program that made the report. docs/adr/0008 defines the values that the agent uses."""

    platform: Literal["native", "browser"]
    user_agent: PayloadText
    os_platform: PayloadText | None
    native_app_version: PayloadText | None
    native_protocol_version: Count | None
    native_capabilities: Annotated[
        tuple[PayloadText, ...], MaxItems(limits.NATIVE_CAPABILITIES_MAX)
    ]
    web_release: PayloadText | None


class Failure(Exact):
    """A step that failed, with the reason."""

    step: PayloadId
    reason: PayloadText


Limitations = Annotated[tuple[PayloadText, ...], MaxItems(limits.LIMITATIONS_MAX)]


class Payload(Exact):
    """The common fields of both payloads.

    Times are ISO 8601 strings. The contract limits only their length. Most ``limitations`` are
    sentences about facts that were denied, cut or not tried. In a network report, they also contain
    a line about each watched device, see `agent/wire/payloads/watched_devices.py`.
    """

    report_id: PayloadId
    started_at: PayloadText
    finished_at: PayloadText
    completeness: Completeness
    identity: Identity
    environment: Environment
    failures: Annotated[tuple[Failure, ...], MaxItems(limits.FAILURES_MAX)]
    limitations: Limitations
