"""More sales for a sandbox that stands, to be written one by one."""

from collections.abc import Iterator
from itertools import islice

from sqlalchemy.orm import Session

from controlplane.merchant.sales import NewSale
from controlplane.sandbox.plan import ORGANIZATION
from controlplane.sandbox.standing import standing_plan, standing_trade


def some_sales(session: Session, count: int) -> Iterator[NewSale]:
    """Give sales of a day to come, of all locations in turn."""
    plan = standing_plan(session, ORGANIZATION)
    trade, venues = standing_trade(session, plan)
    days = [trade.day(venue, plan.last_day + 3) for venue in venues]
    turns = (deal.sale for deals in zip(*days, strict=False) for deal in deals)
    yield from islice(turns, count)
