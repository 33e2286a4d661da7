"""The hours of a record as one row for each day."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from agent.presentation.connectivity.titles import CAUSE_TITLES
from agent.wire.payloads.history import CAUSES, Cause
from agent.wire.payloads.history_lines import HourRow

DAYS_MAX: Final = 366
"""Maximum number of rows."""
SHORT_S: Final = 60
"""An hour with less downtime than this, in seconds, gets a lower-case letter."""


@dataclass(frozen=True, slots=True)
class DayHour:
    """One hour of a day. ``row`` is None if nothing was recorded in this hour."""

    hour: int
    row: HourRow | None

    @property
    def cause(self) -> Cause | None:
        """The cause of the longest downtime; None if there was no downtime."""
        return self.row.downtime[0][0] if self.row and self.row.downtime else None

    @property
    def downtime_s(self) -> int:
        return _downtime_s(self.row) if self.row else 0

    @property
    def letter(self) -> str:
        """The letter of the cause; "." if there was no downtime, " " if nothing was recorded."""
        if self.cause is not None:
            letter = CAUSE_TITLES[self.cause].letter
            return letter.lower() if self.downtime_s < SHORT_S else letter
        return " " if self.row is None else "."


@dataclass(frozen=True, slots=True)
class DayRow:
    date: date
    hours: tuple[DayHour, ...]

    @property
    def title(self) -> str:
        return f"{self.date:%a} {self.date.day} {self.date:%b}"

    @property
    def downtime_s(self) -> int:
        return sum(hour.downtime_s for hour in self.hours)


def day_rows(rows: Iterable[HourRow]) -> tuple[DayRow, ...]:
    """Return a row for each day from the first hour to the last, oldest first.

    Only the first `DAYS_MAX` days get a row. If the clock is set back, two hours have the same date
    and number. The hour with more downtime is used.
    """
    by_hour: dict[tuple[date, int], HourRow] = {}
    for row in rows:
        key = row.hour.at.date(), row.hour.at.hour
        earlier = by_hour.get(key)
        if earlier is None or _downtime_s(row) >= _downtime_s(earlier):
            by_hour[key] = row
    if not by_hour:
        return ()
    first, last = min(by_hour)[0], max(by_hour)[0]
    days = (first + timedelta(days=n) for n in range(min(DAYS_MAX, (last - first).days + 1)))
    return tuple(
        DayRow(day, tuple(DayHour(hour, by_hour.get((day, hour))) for hour in range(24)))
        for day in days
    )


def causes_in(days: Iterable[DayRow]) -> tuple[Cause, ...]:
    """Return the causes that the rows show, in the order of `CAUSES`."""
    causes = {hour.cause for day in days for hour in day.hours}
    return tuple(cause for cause in CAUSES if cause in causes)


def _downtime_s(row: HourRow) -> int:
    return sum(seconds for _, seconds in row.downtime)
