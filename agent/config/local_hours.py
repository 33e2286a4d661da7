"""A range of times of day, such as "23:00-06:00". It may extend past midnight."""

from dataclasses import dataclass
from datetime import datetime, time


@dataclass(frozen=True, slots=True)
class LocalHours:
    """The time from ``begin`` to ``end`` of each day. ``end`` itself is not part of it."""

    begin: time
    end: time

    def contains(self, at: datetime) -> bool:
        """Return whether the time of day of ``at`` is within the range."""
        time_of_day = at.time()
        if self.begin <= self.end:
            return self.begin <= time_of_day < self.end
        return time_of_day >= self.begin or time_of_day < self.end


def parse_local_hours(text: str) -> LocalHours | None:
    """Parse a range. Return None for "". Raises ValueError if ``text`` is not a range."""
    if not text:
        return None
    begin, separator, end = text.partition("-")
    try:
        hours = LocalHours(_time(begin), _time(end))
    except ValueError:
        hours = None
    if not separator or hours is None or hours.begin == hours.end:
        raise ValueError('must be two times such as "23:00-06:00"')
    return hours


def _time(text: str) -> time:
    return datetime.strptime(text.strip(), "%H:%M").time()  # noqa: DTZ007 - a time of day
