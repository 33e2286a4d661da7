"""Sums of days by employee. No rollup has them: they are taken from the sales and refunds.

What a row adds is what it adds to the rollup of days (`controlplane.merchant.rebuild`). A refund
counts for who gave it back, what was ever given back of a sale for who sold it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from controlplane.analytics.reading import Stretch
from controlplane.figures.sums import DaySums
from controlplane.merchant.rebuild import RECIPES, REFUND_DAY, Fact
from controlplane.storage.merchant.merchant_tables import Employee
from controlplane.storage.merchant.rollup_tables import DayRollup

DAY_US: Final = 86_400_000_000
AROUND: Final = 2
"""Days by which a local day and the same day of UTC are apart at most."""
_FACTS: Final = next(recipe.facts for recipe in RECIPES if recipe.rollup is DayRollup)


def employee_days(
    session: Session, organization_id: str, asked: Iterable[Stretch], columns: Sequence[str]
) -> Iterator[tuple[str, Mapping[str, Any], DaySums]]:
    """Give currency, the values of ``columns`` (employee, day, location, payment_type) and sums.

    The employee is an id; None for what nobody's name stands on.
    """
    query = select(Employee.position, Employee.id).where(
        Employee.organization_id == organization_id
    )
    ids = {row.position: row.id for row in session.execute(query)}
    keys = ("currency", *columns)
    for stretch in asked:
        parts = " UNION ALL ".join(_summed(fact, keys, stretch) for fact in _FACTS)
        added = ", ".join(f"CAST(SUM({name}) AS BIGINT) AS {name}" for name in DaySums._fields)
        names = ", ".join(keys)
        sums = f"SELECT {names}, {added} FROM ({parts}) facts GROUP BY {names}"
        for row in session.execute(text(sums)):
            told = dict(zip(keys, row, strict=False))
            currency = told.pop("currency")
            told["employee"] = ids.get(told["employee"])
            yield currency, told, DaySums(*row[len(keys) :])


def _summed(fact: Fact, keys: Sequence[str], stretch: Stretch) -> str:
    is_refund = fact.key is REFUND_DAY
    row, moment = ("r", "refunded_at") if is_refund else ("s", "initiated_at")
    known = fact.key | {"employee": f"{row}.employee"}
    names = ", ".join(f"{known[name]} AS {name}" for name in keys)
    added = ", ".join(f"SUM({fact.sums.get(name, 0)}) AS {name}" for name in DaySums._fields)
    places = ", ".join(f"{location:d}" for location in stretch.locations) or "NULL"
    first, last = stretch.days.first, stretch.days.last
    began, ended = (first - AROUND) * DAY_US, (last + 1 + AROUND) * DAY_US
    where = (
        f"{fact.where} AND {fact.key['location']} IN ({places})"
        f" AND {fact.key['day']} BETWEEN {first:d} AND {last:d}"
        # For the index: what the days are is said above.
        f" AND {row}.{moment} BETWEEN {began:d} AND {ended:d}"
    )
    groups = ", ".join(str(at) for at in range(1, len(keys) + 1))
    return f"SELECT {names}, {added} FROM {fact.source} WHERE {where} GROUP BY {groups}"
