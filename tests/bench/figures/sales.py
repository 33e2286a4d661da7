"""Creates more sales for an existing sandbox. The caller writes them one by one."""

from collections.abc import Iterator
from itertools import islice

from sqlalchemy.orm import Session

from controlplane.merchant.sales import NewSale
from controlplane.sandbox.loading import stored_generator, stored_plan
from controlplane.sandbox.plan import ORGANIZATION


def some_sales(session: Session, count: int) -> Iterator[NewSale]:
    """Yield sales of a future day, from each location in turn."""
    plan = stored_plan(session, ORGANIZATION)
    generator, venues = stored_generator(session, plan)
    days = [generator.transactions(venue, plan.last_day + 3) for venue in venues]
    turns = (each.sale for day in zip(*days, strict=False) for each in day)
    yield from islice(turns, count)
