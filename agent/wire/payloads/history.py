"""What happened to the connection of a machine: incidents, events and hourly figures.

The agent's recorder writes them. The agent and the service show them. All timestamps are in UTC.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, get_args

Cause = Literal[
    "link-down",
    "no-address",
    "address-conflict",
    "gateway-silent",
    "name-servers-silent",
    "provider-down",
    "service-down",
    "service-refuses",
    "unreachable",
    "queue-stopped",
    "page-missing",
    "device-absent",
]
"""The cause of an incident. The cause of an interruption is the first failed part of the path from
this machine to the service. ``unreachable``: the gateway works, and it is unknown whether the
provider or the service failed. The last three causes are local faults (of a print queue, the
kiosk's page or a watched device), which leave the connection intact."""

CAUSES: Final[tuple[Cause, ...]] = get_args(Cause)
"""All causes. Those of `PATH_CAUSES` come first."""
LOCAL_CAUSES: Final[tuple[Cause, ...]] = ("queue-stopped", "page-missing", "device-absent")
"""Causes that leave the connection intact. Several incidents with such a cause can last at the same
time, each with a subject of its own."""
PATH_CAUSES: Final[tuple[Cause, ...]] = CAUSES[: -len(LOCAL_CAUSES)]
"""The causes of an interruption, in the order of the path from this machine to the service."""

EventKind = Literal[
    "agent-started",
    "agent-killed",
    "machine-started",
    "power-lost",
    "slept",
    "clock-set",
    "address-changed",
    "gateway-changed",
    "gateway-conflict",
    "access-point-changed",
    "device-moved",
    "disk-full",
    "memory-exhausted",
    "processor-throttled",
]
"""The kinds of events. ``agent-killed``: the previous run of the agent did not stop cleanly.
``power-lost``: the machine started, and neither the machine nor the agent had stopped cleanly.
``slept``: the machine was suspended. ``gateway-conflict``: two MACs alternately answer for the
gateway's address. ``device-moved``: a watched device has a different address."""

EVENT_KINDS: Final[tuple[EventKind, ...]] = get_args(EventKind)


SUBJECT_END: Final = ": "
"""The separator after the subject of a local fault in `Incident.evidence`."""


@dataclass(frozen=True, slots=True)
class Incident:
    """A time without a usable connection to the service, or with a local fault (`LOCAL_CAUSES`).

    Interruptions with the same cause that follow each other closely are one incident. The same
    applies to local faults with the same cause and subject. ``count`` is the number of these
    interruptions or faults, and ``downtime_s`` the sum of their durations in seconds. ``ended_at``
    is None while the incident lasts. ``evidence`` is a sentence without a full stop. The evidence
    of a local fault begins with its subject and a colon: ``receipts: stopped (media-empty)``.
    """

    cause: Cause
    began_at: datetime
    ended_at: datetime | None
    downtime_s: float
    evidence: str
    count: int = 1

    @property
    def is_interruption(self) -> bool:
        """Whether the connection to the service was interrupted."""
        return self.cause in PATH_CAUSES

    @property
    def subject(self) -> str:
        """What failed, such as the name of a print queue; "" for an interruption."""
        return "" if self.is_interruption else self.evidence.partition(SUBJECT_END)[0]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at one time. ``detail`` is a short text, possibly empty."""

    kind: EventKind
    at: datetime
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Hour:
    """The figures of one hour. ``at`` is the start of the hour, in UTC.

    ``heartbeats`` is the number of attempted heartbeats, ``failures`` the number of failed ones.
    The round-trip times are those of heartbeats, in milliseconds. ``signal_dbm`` is the weakest
    Wi-Fi signal. ``link_errors`` is the increase of the interface's error counters. A figure is
    None if it was not measured.
    """

    at: datetime
    heartbeats: int = 0
    failures: int = 0
    round_trip_p50_ms: float | None = None
    round_trip_p95_ms: float | None = None
    signal_dbm: int | None = None
    link_errors: int | None = None


@dataclass(frozen=True, slots=True)
class History:
    """The record since ``since``: each list is ordered by time, oldest first."""

    since: datetime
    incidents: tuple[Incident, ...] = ()
    events: tuple[Event, ...] = ()
    hours: tuple[Hour, ...] = ()
