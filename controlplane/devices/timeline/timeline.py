"""Thirty days of a device, as cells: how much of each day, and of each hour, it was heard.

Days are those of the location's clock, UTC where it has none: they may have 23 or 25 hours. Silence
is known as rows (`presence.silence`); a silence while the location was closed or worked on is told
apart, and what nobody can know (before enrolment, to come, the service was down) is neither.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

from controlplane.devices.locations.opening_hours import Span
from controlplane.devices.locations.status import Maintenance, Place

DAYS: Final = 30
CellState = Literal["heard", "partly", "offline", "closed", "unknown"]
SIGNS: Final[dict[CellState, str]] = {
    "heard": "█",
    "partly": "▄",
    "offline": "_",
    "closed": "·",
    "unknown": " ",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """Whole seconds of a stretch. What is left of it is not known."""

    since: datetime
    heard_s: int
    offline_s: int
    closed_s: int

    @property
    def state(self) -> CellState:
        if self.offline_s:
            return "partly" if self.heard_s else "offline"
        if self.heard_s:
            return "heard"
        return "closed" if self.closed_s else "unknown"


@dataclass(frozen=True, slots=True)
class Day:
    date: date
    cell: Cell
    hours: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a device. ``gaps`` are its silences, ``breaks`` the service's; an end of
    None is not yet. ``until`` is now, or when it was revoked."""

    since: datetime
    until: datetime
    gaps: tuple[tuple[datetime, datetime | None], ...]
    breaks: tuple[Span, ...]


def strip(known: Known, place: Place, zone: str, now: datetime) -> tuple[Day, ...]:
    """Return the days until today, oldest first."""
    clock = ZoneInfo(zone)
    today = now.astimezone(clock).date()
    begins = _midnight(today - timedelta(days=DAYS - 1), clock)
    alive = _cut([(known.since, min(known.until, now))], begins, now)
    listened = _without(alive, known.breaks)
    silent = _cut([(start, end or now) for start, end in known.gaps], begins, now)
    excused = _excused(place, begins, now)
    heard = _without(listened, silent)
    away = _common(listened, silent)
    parts = (heard, _without(away, excused), _common(away, excused))
    return tuple(
        _day(today - timedelta(days=back), clock, parts) for back in range(DAYS - 1, -1, -1)
    )


def line_of(days: Iterable[Day]) -> str:
    """Return a character for each day."""
    return "".join(SIGNS[day.cell.state] for day in days)


Parts = tuple[list[Span], list[Span], list[Span]]


def _day(day: date, clock: ZoneInfo, parts: Parts) -> Day:
    start, end = _midnight(day, clock), _midnight(day + timedelta(days=1), clock)
    hours, at = [], start
    while at < end:
        hours.append(_cell(at, min(at + timedelta(hours=1), end), parts))
        at += timedelta(hours=1)
    return Day(day, _cell(start, end, parts), tuple(hours))


def _cell(start: datetime, end: datetime, parts: Parts) -> Cell:
    heard, offline, closed = (_seconds(part, start, end) for part in parts)
    return Cell(start, heard, offline, closed)


def _midnight(day: date, clock: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), clock).astimezone(UTC)


def _excused(place: Place, since: datetime, until: datetime) -> list[Span]:
    said: Sequence[Maintenance] = place.maintenance
    spans = [(each.since, each.until) for each in said]
    if place.hours is not None:
        spans += _without([(since, until)], place.hours.spans(since, until))
    return _cut(spans, since, until)


def _cut(spans: Iterable[Span], since: datetime, until: datetime) -> list[Span]:
    """Return them within two moments, in order and disjoint."""
    found: list[Span] = []
    for start, end in sorted((max(start, since), min(end, until)) for start, end in spans):
        if start >= end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _common(some: Iterable[Span], others: Sequence[Span]) -> list[Span]:
    return [each for start, end in some for each in _cut(others, start, end)]


def _without(some: Iterable[Span], others: Sequence[Span]) -> list[Span]:
    left: list[Span] = []
    for start, end in some:
        at = start
        for taken, given in _cut(others, start, end):
            left.append((at, taken))
            at = given
        left.append((at, end))
    return [(start, end) for start, end in left if start < end]


def _seconds(spans: Iterable[Span], since: datetime, until: datetime) -> int:
    total = sum(((end - start) for start, end in _cut(spans, since, until)), timedelta())
    return round(total.total_seconds())
