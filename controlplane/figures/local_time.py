"""Local time of a location: the local day and hour of a timestamp, and the intervals of a day.

``day`` is the number of days since 1970-01-01, and ``hour`` is ``day`` × 24 plus the local hour of
the day. A timestamp belongs to the date that local clocks show. A local day can therefore have 23
or 25 hours, or not exist. It can also consist of two intervals: until 2011, the clocks of
St. John's were set back at 00:01, so that the day before continued for an hour.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

DAY_HOURS: Final = 24
EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
SEARCH_MARGIN: Final = timedelta(hours=27)
"""The start of a local day is searched this long before and after midnight UTC of its date.

Local time differs from UTC by at most 15 hours. The rest is a margin.
"""
SEARCH_STEP: Final = timedelta(hours=1)
"""To detect changes, the offset is read at timestamps that are this far apart."""
PRECISION: Final = timedelta(microseconds=1)
"""Precision to which the timestamp of a change is computed."""

Interval = tuple[datetime, datetime]
"""Start and exclusive end, in UTC."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The time zone in which the days of a location are counted.

    If the location has no valid time zone, the zone is UTC and ``fell_back`` is True.
    """

    zone: tzinfo
    name: str
    fell_back: bool


@lru_cache(maxsize=1024)
def clock_of(zone: str | None) -> Clock:
    """Return the clock for an IANA name. None and invalid names fall back to UTC."""
    try:
        return Clock(ZoneInfo(zone), zone, fell_back=False) if zone else _FALLBACK
    except (KeyError, ValueError, OSError):  # OSError: the name is a directory
        return _FALLBACK


_FALLBACK: Final = Clock(UTC, "UTC", fell_back=True)


def day_of(local_date: date) -> int:
    return local_date.toordinal() - EPOCH_ORDINAL


def date_of(day: int) -> date:
    return date.fromordinal(day + EPOCH_ORDINAL)


def hour_of(timestamp: datetime, zone: tzinfo) -> int:
    """Return the local hour of ``timestamp``: 24 × day, plus the hour of the day (0 to 23)."""
    local = timestamp.astimezone(zone)
    return (local.toordinal() - EPOCH_ORDINAL) * DAY_HOURS + local.hour


@lru_cache(maxsize=8192)
def intervals(zone: tzinfo, from_day: int, to_day: int) -> tuple[Interval, ...]:
    """Return the intervals in which local clocks show one of these days, in order.

    A day that the zone skipped has no interval.
    """
    open_intervals: list[Interval] = []
    opened_at: datetime | None = None
    opens, ends = _transitions(zone, from_day), _transitions(zone, to_day + 1)
    # ``is_open``: clocks show ``from_day`` or a later day. ``is_over``: they show a day after
    # ``to_day``.
    is_open = is_over = False
    for timestamp in sorted({*opens, *ends}):
        is_open ^= timestamp in opens
        is_over ^= timestamp in ends
        if is_open and not is_over:
            opened_at = opened_at or timestamp
        elif opened_at is not None:
            open_intervals.append((opened_at, timestamp))
            opened_at = None
    return tuple(open_intervals)


def offsets(
    zone: tzinfo, start: datetime, end: datetime
) -> list[tuple[datetime, datetime, timedelta]]:
    """Divide the time from ``start`` to ``end`` into intervals with a constant offset from UTC.

    Returns the start, the end and the offset of each interval.
    """
    edges = [start, *_changes(zone, start, end), end]
    return [(a, b, _offset(zone, a)) for a, b in pairwise(edges)]


@lru_cache(maxsize=8192)
def _transitions(zone: tzinfo, day: int) -> frozenset[datetime]:
    """Return when the statement "clocks show this day or a later day" becomes true or false."""
    middle = datetime.combine(date_of(day), datetime.min.time(), UTC)
    transitions: set[datetime] = set()
    start = middle - SEARCH_MARGIN
    is_true = False
    for end in (*_changes(zone, start, middle + SEARCH_MARGIN), middle + SEARCH_MARGIN):
        # The offset is constant from ``start`` to ``end``. In this interval, the statement is true
        # from ``true_from`` on.
        midnight = middle - _offset(zone, start)
        true_from = min(max(start, midnight), end)
        if is_true and true_from > start:
            transitions.add(start)
            is_true = False
        if not is_true and true_from < end:
            transitions.add(true_from)
            is_true = True
        start = end
    return frozenset(transitions)


def _changes(zone: tzinfo, start: datetime, end: datetime) -> list[datetime]:
    """Return the timestamps between ``start`` and ``end`` at which the offset changes."""
    changes = []
    while start < end:
        step = min(start + SEARCH_STEP, end)
        if _offset(zone, start) != _offset(zone, step):
            changes.append(_first_with(zone, start, step))
        start = step
    return [change for change in changes if change < end]


def _first_with(zone: tzinfo, before: datetime, after: datetime) -> datetime:
    """Bisect for the first timestamp that has the offset of ``after``."""
    offset = _offset(zone, after)
    while after - before > PRECISION:
        middle = before + (after - before) // 2
        before, after = (before, middle) if _offset(zone, middle) == offset else (middle, after)
    return after


def _offset(zone: tzinfo, timestamp: datetime) -> timedelta:
    return timestamp.astimezone(zone).utcoffset() or timedelta()
