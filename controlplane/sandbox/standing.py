"""A sandbox that stands in the database, and how its trade goes on."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from controlplane.figures.local_time import HOURS, hour_of
from controlplane.merchant.writing import add_refund, add_sale
from controlplane.sandbox.catalog import Shelf, make_catalog
from controlplane.sandbox.places import Venue, find_places
from controlplane.sandbox.plan import Plan
from controlplane.sandbox.trade import Deal, Trade, trade
from controlplane.storage.merchant.merchant_tables import Organization
from controlplane.storage.merchant.sales_tables import Refund, Sale

REFUND_DAYS: Final = 13
"""A refund comes at most twelve days after its sale, in hours of another local day."""


class NoSandboxError(Exception):
    """The organization is not there, or its data was not made up."""


def standing_plan(session: Session, organization_id: str) -> Plan:
    """Return the plan the sandbox was loaded by. Raises NoSandboxError."""
    organization = session.get(Organization, organization_id)
    if organization is None or organization.sandbox is None:
        raise NoSandboxError(f"organization {organization_id} is no sandbox")
    return Plan.read(organization.sandbox)


def standing_trade(session: Session, plan: Plan) -> tuple[Trade, list[Venue]]:
    venues, ways = find_places(session, plan)
    catalog = make_catalog(Shelf(session, is_standing=True), plan)
    return trade(plan, catalog, ways), venues


def last_moment(session: Session, organization_id: str) -> datetime:
    """Return when the newest sale happened, from which on the trade goes on."""
    query = select(func.max(Sale.initiated_at)).where(Sale.organization_id == organization_id)
    found = session.execute(query).scalar_one()
    if found is None:
        raise NoSandboxError(f"organization {organization_id} has no sales to go on from")
    return found


def go_on(
    session: Session, going: tuple[Trade, list[Venue]], since: datetime, until: datetime
) -> tuple[int, int]:
    """Write what happens after ``since`` and not after ``until``, each with its rollups. Returns
    how many sales and refunds.

    A deal is planned by its day, so that what is written is what a load until that moment would
    have written. Refunds of sales before ``since`` are looked for as far back as refunds come.
    """
    trade, venues = going
    sales = refunds = 0
    for venue in venues:
        first = hour_of(since, venue.clock.zone) // HOURS - REFUND_DAYS
        for day in range(first, hour_of(until, venue.clock.zone) // HOURS + 1):
            for deal in trade.day(venue, day):
                if since < deal.sale.initiated_at <= until:
                    position = add_sale(session, deal.sale, deal.sale.initiated_at)
                    sales += 1
                else:
                    position = 0
                refunds += _refund(session, deal, position, since, until)
    return sales, refunds


def _refund(session: Session, deal: Deal, position: int, since: datetime, until: datetime) -> int:
    """``position`` is that of a sale just written, 0 for one of before."""
    count = 0
    for refund in deal.refunds:
        at = refund.refunded_at
        is_due = position > 0 if at is None else since < at <= until
        sale = position or (is_due and _position_of(session, deal))
        if is_due and sale and not _is_written(session, refund.id):
            add_refund(session, replace(refund, sale=sale), at or deal.sale.initiated_at)
            count += 1
    return count


def _position_of(session: Session, deal: Deal) -> int:
    found = session.execute(select(Sale.position).where(Sale.id == deal.sale.id)).scalar()
    return found or 0


def _is_written(session: Session, refund_id: object) -> bool:
    found = session.execute(select(Refund.position).where(Refund.id == refund_id)).scalar()
    return found is not None
