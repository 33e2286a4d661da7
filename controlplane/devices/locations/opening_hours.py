"""When a location is open: hours of the week on its own clock, as moments in UTC.

An interval belongs to the day on which it begins and may end on the next one. On the night clocks
are put back, an hour that comes twice is open from the first to the second; one that does not come,
when they are put forward, is as far behind the change as it was to be (PEP 495).
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
LOOKED_BACK: Final = timedelta(days=8)
"""A location that has been open for longer is open always."""
_LINE: Final = re.compile(
    r"(?P<first>[A-Za-z]{3})(?:-(?P<last>[A-Za-z]{3}))? +"
    r"(?P<h1>\d{1,2}):(?P<m1>\d\d)-(?P<h2>\d{1,2}):(?P<m2>\d\d)"
)

Span = tuple[datetime, datetime]
"""From and until, in UTC; the latter is no more in it."""


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """``weekday`` 0 is Monday. Minutes after midnight; an ``end`` not after ``start`` is the next
    day's."""

    weekday: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class OpeningHours:
    """``zone`` is an IANA name. Without intervals it is never open."""

    zone: str
    intervals: tuple[Interval, ...]

    def spans(self, since: datetime, until: datetime) -> list[Span]:
        """Return when it is open between two moments: disjoint, in order, cut to them."""
        zone = ZoneInfo(self.zone)
        day = since.astimezone(zone).date() - timedelta(days=1)
        last = until.astimezone(zone).date()
        found = []
        while day <= last:
            for each in self.intervals:
                if each.weekday == day.weekday():
                    found.append(_span(each, day, zone))
            day += timedelta(days=1)
        return _united(found, since, until)

    def opened_at(self, now: datetime) -> datetime | None:
        """Return since when it is open, at most 8 days ago; None while it is closed."""
        for start, end in _around(self, now.date()):
            if start <= now < end:
                return max(start, now - LOOKED_BACK)
        return None


@lru_cache(maxsize=4096)
def _around(hours: OpeningHours, day: date) -> tuple[Span, ...]:
    """The same answers a whole day: a look at 50,000 devices asks for few locations."""
    midnight = datetime.combine(day, time(), UTC)
    return tuple(hours.spans(midnight - LOOKED_BACK, midnight + timedelta(days=2)))


def read_hours(zone: str, lines: Iterable[str]) -> OpeningHours:
    """Read ``Mon-Fri 08:00-22:00``, a line each. Raises ValueError in words for a person."""
    require_zone(zone)
    intervals = sorted({each for line in lines for each in _intervals(line)})
    if len(intervals) > INTERVALS_MAX:
        raise ValueError(f"at most {INTERVALS_MAX} intervals a week")
    return OpeningHours(zone, tuple(intervals))


def require_zone(zone: str) -> None:
    """Raise ValueError unless it is the name of a time zone."""
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{zone!r} is no time zone: a name as Europe/Riga is needed") from error


def written(hours: OpeningHours) -> list[str]:
    """Return the lines that `read_hours` reads as these."""
    return [
        f"{DAYS[each.weekday]} {_clock(each.start)}-{_clock(each.end)}" for each in hours.intervals
    ]


def _intervals(line: str) -> list[Interval]:
    found = _LINE.fullmatch(line.strip())
    if found is None:
        raise ValueError(f'{line!r} is not of the form "Mon-Fri 08:00-22:00"')
    first = _weekday(found["first"])
    last = _weekday(found["last"] or found["first"])
    start = _minutes(found["h1"], found["m1"])
    end = _minutes(found["h2"], found["m2"])
    if start in {DAY_MINUTES, end}:
        raise ValueError(f"{line!r} opens and closes at the same time; a whole day is 00:00-24:00")
    count = (last - first) % 7 + 1
    return [Interval((first + each) % 7, start, end) for each in range(count)]


def _weekday(word: str) -> int:
    if word.capitalize() not in DAYS:
        raise ValueError(f"{word!r} is no day of the week: {', '.join(DAYS)}")
    return DAYS.index(word.capitalize())


def _minutes(hours: str, minutes: str) -> int:
    found = int(hours) * 60 + int(minutes)
    if int(minutes) > 59 or found > DAY_MINUTES:
        raise ValueError(f"{hours}:{minutes} is no time of a day")
    return found


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _span(interval: Interval, day: date, zone: ZoneInfo) -> Span:
    over = interval.end <= interval.start
    start = _moment(day, interval.start, zone, fold=0)
    return start, _moment(day + timedelta(days=over), interval.end, zone, fold=1)


def _moment(day: date, minutes: int, zone: ZoneInfo, *, fold: int) -> datetime:
    if minutes == DAY_MINUTES:
        day, minutes = day + timedelta(days=1), 0
    local = datetime.combine(day, time(minutes // 60, minutes % 60, fold=fold), zone)
    if local.astimezone(UTC).astimezone(zone).replace(fold=0, tzinfo=None) != local.replace(
        fold=0, tzinfo=None
    ):
        local = local.replace(
            fold=0
        )  # a time that does not come: counted on from before the change
    return local.astimezone(UTC)


def _united(spans: Sequence[Span], since: datetime, until: datetime) -> list[Span]:
    united: list[Span] = []
    for begins, ends in sorted(spans):
        start, end = max(begins, since), min(ends, until)
        if start >= end:
            continue
        if united and start <= united[-1][1]:
            united[-1] = (united[-1][0], max(end, united[-1][1]))
        else:
            united.append((start, end))
    return united
