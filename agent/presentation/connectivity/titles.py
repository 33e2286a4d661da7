"""The causes of incidents and the kinds of events, for users."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from agent.wire.payloads.history import Cause, EventKind


@dataclass(frozen=True, slots=True)
class CauseTitle:
    """A sentence without a full stop, a label for legends, and one letter for a timeline."""

    sentence: str
    label: str
    letter: str


CAUSE_TITLES: Final[Mapping[Cause, CauseTitle]] = {
    "link-down": CauseTitle("The network cable or Wi-Fi had no link", "no link", "L"),
    "no-address": CauseTitle("The machine got no address", "no address", "A"),
    "address-conflict": CauseTitle("Two machines used one address", "address used twice", "T"),
    "gateway-silent": CauseTitle("The router did not answer", "router", "R"),
    "name-servers-silent": CauseTitle("The name servers did not answer", "name servers", "N"),
    "provider-down": CauseTitle("The internet provider was down", "internet provider", "P"),
    "service-down": CauseTitle("The service did not answer", "service", "S"),
    "service-refuses": CauseTitle("The service refused the agent", "agent refused", "X"),
    "unreachable": CauseTitle("The service could not be reached", "provider or service", "U"),
    "queue-stopped": CauseTitle("A print queue stopped", "print queue", "Q"),
    "page-missing": CauseTitle("The kiosk's page was not open", "kiosk", "K"),
    "device-absent": CauseTitle("A watched device was gone", "watched device", "D"),
}

EVENT_TITLES: Final[Mapping[EventKind, str]] = {
    "agent-started": "The agent started",
    "agent-killed": "The agent ended unexpectedly",
    "machine-started": "The machine started",
    "power-lost": "The machine lost power",
    "slept": "The machine slept",
    "clock-set": "The clock was set",
    "address-changed": "The machine got another address",
    "gateway-changed": "The router changed",
    "gateway-conflict": "Two machines use the router's address",
    "access-point-changed": "The Wi-Fi access point changed",
    "device-moved": "A watched device got another address",
    "disk-full": "The disk was full",
    "memory-exhausted": "The memory was exhausted",
    "processor-throttled": "The processor was slowed down because of heat",
}
