"""Sums for groupings that no rollup contains: employees, and hours with articles or payment types.

The sums are computed from sales and refunds. Each sale and each refund adds the same values that it
adds to the rollups (`controlplane.merchant.rebuild`). A refund counts for the hour of the refund,
and for the employee who made the refund. Only in the columns ``undone`` and ``undated_...``, a
refund counts for the hour and the employee of the refunded sale.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from controlplane.analytics.reading import ROLLUPS, DayRange, Part, SumsByColumns
from controlplane.figures.local_time import DAY_HOURS
from controlplane.merchant.rebuild import SUMMANDS, Summand, sum_query
from controlplane.storage.merchant.merchant_tables import Employee

DAYS_MAX: Final = 92
"""Maximum number of days of a query by these groupings, which reads every sale of these days."""
DAY_US: Final = 86_400_000_000
"""A day in microseconds. The tables store times in microseconds since 1970-01-01."""
UTC_MARGIN_DAYS: Final = 2
"""Days added before and after local days, so that a range of UTC days surely contains them."""


def sums_of_sales(
    session: Session,
    organization_id: str,
    sum_type: type[Part],
    day_ranges: Iterable[DayRange],
    columns: Sequence[str],
) -> Iterator[SumsByColumns[Part]]:
    """Yield the sums for each combination of a currency and values of ``columns``.

    The possible columns are employee, hour, day, location and payment_type. `ItemSums` also have
    the column snapshot. The value of employee is the employee's id, or None for sales without an
    employee. ``hour`` is the hour of the day.
    """
    query = select(Employee.position, Employee.id).where(
        Employee.organization_id == organization_id
    )
    ids = {row.position: row.id for row in session.execute(query)}
    keys = ("currency", *columns)
    for day_range in day_ranges:
        parts = [_part(summand, day_range) for summand in SUMMANDS[ROLLUPS[sum_type]]]
        for row in session.execute(text(sum_query(parts, keys, sum_type._fields))):
            values = dict(zip(keys, row, strict=False))
            currency = values.pop("currency")
            if "employee" in values:
                values["employee"] = ids.get(values["employee"])
            yield currency, values, sum_type(*row[len(keys) :])


def _part(summand: Summand, day_range: DayRange) -> tuple[Summand, str]:
    """Return ``summand`` with the keys ``employee`` and ``hour``, and the SQL condition for
    locations and days.
    """
    # The table's alias in the query: "s" for sales, "r" for refunds.
    alias = summand.key["location"].partition(".")[0]
    timestamp = {"s": "initiated_at", "r": "refunded_at"}[alias]
    locations = ", ".join(f"{location:d}" for location in day_range.locations) or "NULL"
    first, last = day_range.days.first, day_range.days.last
    start_us, end_us = (first - UTC_MARGIN_DAYS) * DAY_US, (last + 1 + UTC_MARGIN_DAYS) * DAY_US
    condition = (
        f"{summand.key['location']} IN ({locations})"
        f" AND {summand.key['day']} BETWEEN {first:d} AND {last:d}"
        # The line before selects the days. This one lets the database use the index.
        f" AND {alias}.{timestamp} BETWEEN {start_us:d} AND {end_us:d}"
    )
    key = summand.key | {
        "employee": f"{alias}.employee",
        "hour": f"{alias}.local_hour % {DAY_HOURS}",
    }
    return replace(summand, key=key), condition
