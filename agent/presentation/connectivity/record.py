"""Reads the connectivity record from the fields of a snapshot. All lines in it are untrusted."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
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
"""Maximum number of hours in a report. Seven days that begin in the middle of an hour touch one
hour more than 7 * 24. A clock that is set back adds one more."""
_HOURS_PERIOD: Final = timedelta(hours=HOURS_MAX)
"""Hours that are older than the newest hour by more than this are ignored."""
LINES_MAX: Final = 32
"""Maximum number of lines that are read from each field, except from ``history.hours``."""

Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class ReportedRecord:
    """The connectivity record in a report.

    ``since`` is the start of the record; None if it is unreadable. ``incidents`` and ``events``
    have at most LINES_MAX entries each, newest first. ``totals``, ``hours``, ``interruption_count``
    and ``downtime_s`` cover the last seven days. ``hours`` is ordered by time.
    """

    since: datetime | None
    incidents: tuple[Incident, ...]
    events: tuple[Event, ...]
    totals: tuple[CauseTotal, ...]
    hours: tuple[HourRow, ...]
    interruption_count: int
    downtime_s: float

    def to_local(self, at: datetime) -> datetime:
        """Return a time in the machine's local time, or in UTC if the report has no hours."""
        earlier = (row for row in reversed(self.hours) if row.hour.at <= at)
        row = next(earlier, self.hours[0] if self.hours else None)
        try:
            return at.astimezone(UTC if row is None else row.hour.at.tzinfo)
        except OverflowError:
            return at


def record_of(machine: Fields) -> ReportedRecord | None:
    """Return the record in a snapshot, or None if the snapshot contains no record."""
    if not machine.is_known("history.since"):
        return None
    hours = _parsed(machine.texts("history.hours")[-HOURS_MAX:], parse_hour)
    newest = max((row.hour.at for row in hours), default=None)
    recent = [row for row in hours if newest and newest - row.hour.at <= _HOURS_PERIOD]
    return ReportedRecord(
        since=parse_timestamp(machine.text("history.since")),
        incidents=incidents_of(machine),
        events=_parsed(machine.texts("history.events")[:LINES_MAX], parse_event),
        totals=totals_of(machine),
        hours=tuple(sorted(recent, key=lambda row: row.hour.at)),
        interruption_count=round(machine.number("history.incidents7d") or 0),
        downtime_s=machine.number("history.downtimeSeconds7d") or 0.0,
    )


def totals_of(machine: Fields) -> tuple[CauseTotal, ...]:
    """Return the totals of the last seven days, without parsing the rest of the record."""
    return _parsed(machine.texts("history.causes7d")[:LINES_MAX], parse_total)


def incidents_of(machine: Fields) -> tuple[Incident, ...]:
    return _parsed(machine.texts("history.recent")[:LINES_MAX], parse_incident)


def _parsed(lines: Iterable[str], parse: Callable[[str], Parsed | None]) -> tuple[Parsed, ...]:
    return tuple(each for each in map(parse, lines) if each is not None)
