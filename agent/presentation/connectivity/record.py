"""Reads the connectivity record from the fields of a snapshot. All lines in it are untrusted."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from agent.presentation.findings.snapshot_facts import Fields
from agent.presentation.humanize import parse_timestamp
from agent.wire.payloads.history import Event, Incident
from agent.wire.payloads.history_lines import (
    CauseTotal,
    HourRow,
    parse_event,
    parse_hour,
    parse_incident,
    parse_total,
)

HOURS_MAX: Final = 7 * 24 + 2
"""A report has one hour more than seven days, and one more if the clock is set back."""
_LINES_MAX: Final = 32

Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class ReportedRecord:
    """The connectivity record in a report. Incidents and events are the newest 32, newest first.

    ``totals`` and ``hours`` are those of the last seven days. ``hours`` is ordered by time.
    """

    since: datetime | None
    incidents: tuple[Incident, ...]
    events: tuple[Event, ...]
    totals: tuple[CauseTotal, ...]
    hours: tuple[HourRow, ...]
    signal_dbm: float | None


def record_of(machine: Fields) -> ReportedRecord | None:
    """Return the record of a snapshot; None if it has none."""
    if not machine.is_known("history.since"):
        return None
    hours = _parsed(machine, "history.hours", parse_hour, HOURS_MAX)
    return ReportedRecord(
        since=parse_timestamp(machine.text("history.since")),
        incidents=_parsed(machine, "history.recent", parse_incident, _LINES_MAX),
        events=_parsed(machine, "history.events", parse_event, _LINES_MAX),
        totals=_parsed(machine, "history.causes7d", parse_total, _LINES_MAX),
        hours=tuple(sorted(hours, key=lambda row: row.hour.at)),
        signal_dbm=machine.number("history.signalMinDbm24h"),
    )


def _parsed(
    machine: Fields, key: str, parse: Callable[[str], Parsed | None], maximum: int
) -> tuple[Parsed, ...]:
    lines = map(parse, machine.texts(key)[-maximum:])
    return tuple(each for each in lines if each is not None)
