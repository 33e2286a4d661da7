"""Sums by day and employee, computed from sales and refunds: no rollup contains employees.

Each sale and each refund adds the same values as it adds to the rollup of days
(`controlplane.merchant.rebuild`). A refund counts for the employee who made the refund. The columns
``undone`` and ``undated_``, which are about the refunded sale, count for the employee who made the
sale.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from controlplane.analytics.reading import Stretch
from controlplane.figures.sums import DaySums
from controlplane.merchant.rebuild import FACTS, REFUND_DAY, Fact, summed
from controlplane.storage.merchant.merchant_tables import Employee
from controlplane.storage.merchant.rollup_tables import DayRollup

DAY_US: Final = 86_400_000_000
AROUND: Final = 2
"""Maximum distance in days between a local day and the same day in UTC."""


def employee_days(
    session: Session, organization_id: str, stretches: Iterable[Stretch], columns: Sequence[str]
) -> Iterator[tuple[str, Mapping[str, Any], DaySums]]:
    """Yield a currency, the values of ``columns``, and the sums for each combination of them.

    ``columns`` are some of employee, day, location and payment_type. The value of employee is the
    employee's id, or None for sales without an employee.
    """
    query = select(Employee.position, Employee.id).where(
        Employee.organization_id == organization_id
    )
    ids = {row.position: row.id for row in session.execute(query)}
    keys = ("currency", *columns)
    for stretch in stretches:
        parts = [_part(fact, stretch) for fact in FACTS[DayRollup]]
        for row in session.execute(text(summed(parts, keys, DaySums._fields))):
            values = dict(zip(keys, row, strict=False))
            currency = values.pop("currency")
            values["employee"] = ids.get(values["employee"])
            yield currency, values, DaySums(*row[len(keys) :])


def _part(fact: Fact, stretch: Stretch) -> tuple[Fact, str]:
    """Return ``fact`` grouped also by employee, and the SQL condition for locations and days."""
    is_refund = fact.key is REFUND_DAY
    row, timestamp = ("r", "refunded_at") if is_refund else ("s", "initiated_at")
    locations = ", ".join(f"{location:d}" for location in stretch.locations) or "NULL"
    first, last = stretch.days.first, stretch.days.last
    began, ended = (first - AROUND) * DAY_US, (last + 1 + AROUND) * DAY_US
    condition = (
        f"{fact.key['location']} IN ({locations})"
        f" AND {fact.key['day']} BETWEEN {first:d} AND {last:d}"
        # The line before selects the days. This one lets the database use the index.
        f" AND {row}.{timestamp} BETWEEN {began:d} AND {ended:d}"
    )
    return replace(fact, key=fact.key | {"employee": f"{row}.employee"}), condition
