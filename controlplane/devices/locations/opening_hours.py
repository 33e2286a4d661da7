"""Opening hours: weekly intervals in a location's local time, converted to time spans in UTC.

An interval belongs to the day on which it begins, and can end on the next day. When clocks go back,
some local times occur twice. A span then begins at the first occurrence of its start and ends at
the second occurrence of its end. When clocks go forward, some local times do not exist. They are
converted with the UTC offset before the change (PEP 495).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
DAY_MINUTES: Final = 24 * 60
INTERVALS_MAX: Final = 50
LOOKBACK: Final = timedelta(days=8)
"""How far back `OpeningHours.opened_at` searches for the time at which a location opened."""
_LINE: Final = re.compile(
    r"(?P<first>[A-Za-z]{3})(?:-(?P<last>[A-Za-z]{3}))? +"
    r"(?P<h1>\d{1,2}):(?P<m1>\d\d)-(?P<h2>\d{1,2}):(?P<m2>\d\d)"
)

Span = tuple[datetime, datetime]
"""Start and end in UTC; the end is exclusive."""


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """``weekday`` 0 is Monday. ``start`` and ``end`` are minutes after midnight; an ``end`` that is
    not after ``start`` is on the next day.
    """

    weekday: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class OpeningHours:
    """``zone`` is an IANA name. Without intervals the location is never open."""

    zone: str
    intervals: tuple[Interval, ...]

    def spans(self, since: datetime, until: datetime) -> list[Span]:
        """Return the spans between two times in which the location is open.

        The spans are in order and do not overlap.
        """
        zone = ZoneInfo(self.zone)
        day = since.astimezone(zone).date() - timedelta(days=1)
        last = until.astimezone(zone).date()
        results = []
        while day <= last:
            for interval in self.intervals:
                if interval.weekday == day.weekday():
                    results.append(_span(interval, day, zone))
            day += timedelta(days=1)
        return merge_spans(results, since, until)

    def opened_at(self, now: datetime) -> datetime | None:
        """Return when the location opened, or None if it is closed at ``now``.

        If it has been open for more than 8 days, return the time 8 days ago.
        """
        for start, end in _spans_around(self, now.date()):
            if start <= now < end:
                return max(start, now - LOOKBACK)
        return None


@lru_cache(maxsize=4096)
def _spans_around(hours: OpeningHours, day: date) -> tuple[Span, ...]:
    """Return the open spans from 8 days before a day to the end of the following day, in UTC.

    The spans are cached, because all devices of a location need the same spans.
    """
    midnight = datetime.combine(day, time(), UTC)
    return tuple(hours.spans(midnight - LOOKBACK, midnight + timedelta(days=2)))


def read_hours(zone: str, lines: Iterable[str]) -> OpeningHours:
    """Parse lines such as ``Mon-Fri 08:00-22:00``. Raises ValueError with a message for users."""
    return _parse(zone, tuple(lines))


@lru_cache(maxsize=4096)
def _parse(zone: str, lines: tuple[str, ...]) -> OpeningHours:
    """Parse the opening hours of a location.

    The results are cached, because each evaluation of the fleet needs the hours of all locations.
    """
    require_zone(zone)
    intervals = sorted({interval for line in lines for interval in _intervals(line)})
    if len(intervals) > INTERVALS_MAX:
        raise ValueError(f"at most {INTERVALS_MAX} intervals per week are possible")
    return OpeningHours(zone, tuple(intervals))


def require_zone(zone: str) -> None:
    """Raise ValueError unless ``zone`` is the name of a time zone."""
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{zone!r} is not a time zone. Use a name like Europe/Riga") from error


def format_hours(hours: OpeningHours) -> list[str]:
    """Return the hours as lines that `read_hours` accepts."""
    return [
        f"{DAYS[interval.weekday]} {_clock(interval.start)}-{_clock(interval.end)}"
        for interval in hours.intervals
    ]


def describe_hours(lines: Sequence[str] | None, zone: str) -> str:
    """Return ``Mon 08:00-22:00, … (Europe/Riga)``. ``lines`` None means always open."""
    return f"{'always open' if lines is None else ', '.join(lines)} ({zone})"


def merge_spans(spans: Iterable[Span], since: datetime, until: datetime) -> list[Span]:
    """Return the parts of the spans between two times, in order. Overlapping spans are merged."""
    merged: list[Span] = []
    for begins, ends in sorted(spans):
        start, end = max(begins, since), min(ends, until)
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _intervals(line: str) -> list[Interval]:
    match = _LINE.fullmatch(line.strip())
    if match is None:
        raise ValueError(f'{line!r} does not have the form "Mon-Fri 08:00-22:00"')
    first = _weekday(match["first"])
    last = _weekday(match["last"] or match["first"])
    start = _minutes(match["h1"], match["m1"])
    end = _minutes(match["h2"], match["m2"])
    if start in {DAY_MINUTES, end}:
        raise ValueError(
            f"{line!r} must begin before 24:00, and end at a different time."
            " A whole day is 00:00-24:00"
        )
    count = (last - first) % 7 + 1
    return [Interval((first + offset) % 7, start, end) for offset in range(count)]


def _weekday(word: str) -> int:
    if word.capitalize() not in DAYS:
        raise ValueError(f"{word!r} is not a day of the week. Use one of {', '.join(DAYS)}")
    return DAYS.index(word.capitalize())


def _minutes(hours: str, minutes: str) -> int:
    total = int(hours) * 60 + int(minutes)
    if int(minutes) > 59 or total > DAY_MINUTES:
        raise ValueError(f"{hours}:{minutes} is not a time of day")
    return total


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _span(interval: Interval, day: date, zone: ZoneInfo) -> Span:
    last_day = day + timedelta(days=1) if interval.end <= interval.start else day
    start = _timestamp_of(day, interval.start, zone, fold=0)
    return start, _timestamp_of(last_day, interval.end, zone, fold=1)


def _timestamp_of(day: date, minutes: int, zone: ZoneInfo, *, fold: int) -> datetime:
    if minutes == DAY_MINUTES:
        day, minutes = day + timedelta(days=1), 0
    local = datetime.combine(day, time(minutes // 60, minutes % 60, fold=fold), zone)
    if local.astimezone(UTC).astimezone(zone).replace(fold=0, tzinfo=None) != local.replace(
        fold=0, tzinfo=None
    ):
        # The local time does not exist. It is converted with the UTC offset before the change.
        local = local.replace(fold=0)
    return local.astimezone(UTC)
