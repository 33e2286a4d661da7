"""The local days of a query, and the local days of the previous period."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, Literal

from controlplane.figures.local_time import DAY_HOURS, Clock, date_of, day_of, hour_of

Period = Literal["today", "yesterday", "last7", "thisMonth", "custom"]
DAYS_MAX: Final = 366
DATE_MIN: Final = date(1971, 1, 1)
DATE_MAX: Final = date(2999, 12, 31)
"""The earliest and the latest date that is permitted in the period `custom`."""


class PeriodError(ValueError):
    """A field of the query is invalid: ``from`` or ``to``."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Days:
    """A range of local days, the first and the last included."""

    first: int
    last: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    @property
    def previous(self) -> "Days":
        """Return the previous period. It ends directly before this period, and is equally long."""
        return Days(self.first - self.count, self.first - 1)

    @property
    def hours(self) -> tuple[int, int]:
        """Return the first and the last local hour of these days."""
        return self.first * DAY_HOURS, (self.last + 1) * DAY_HOURS - 1


@dataclass(frozen=True, slots=True)
class PeriodQuery:
    """The requested period. Only the period `custom` uses ``first`` and ``last``."""

    period: Period = "today"
    first: date | None = None
    last: date | None = None


def period_days(query: PeriodQuery, clock: Clock, now: datetime) -> Days:
    """Return the local days of a period in the time zone of ``clock``. Raises PeriodError."""
    if query.period == "custom":
        return _custom_days(query)
    today = hour_of(now, clock.zone) // DAY_HOURS
    first, last = {
        "today": (today, today),
        "yesterday": (today - 1, today - 1),
        "last7": (today - 6, today),
        "thisMonth": (day_of(date_of(today).replace(day=1)), today),
    }[query.period]
    return Days(first, last)


def _custom_days(query: PeriodQuery) -> Days:
    first, last = _required("from", query.first), _required("to", query.last)
    if first > last:
        raise PeriodError("to", "must not be before `from`")
    if (last - first).days >= DAYS_MAX:
        raise PeriodError("to", f"must be less than {DAYS_MAX} days after `from`")
    return Days(day_of(first), day_of(last))


def _required(field: str, value: date | None) -> date:
    if value is None:
        raise PeriodError(field, "is needed for the period `custom`")
    if not DATE_MIN <= value <= DATE_MAX:
        raise PeriodError(field, f"must be from {DATE_MIN} to {DATE_MAX}")
    return value
