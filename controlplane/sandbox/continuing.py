"""Generates the sales of a stored sandbox as time passes."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from controlplane.figures.local_time import DAY_HOURS, hour_of
from controlplane.merchant.writing import add_refund, add_sale
from controlplane.sandbox.catalog import load_catalog
from controlplane.sandbox.generator import DayGenerator, Transaction
from controlplane.sandbox.locations import Venue, load_locations
from controlplane.sandbox.plan import Plan
from controlplane.storage.merchant.merchant_tables import Organization
from controlplane.storage.merchant.sales_tables import Refund, Sale

REFUND_DAYS: Final = 13
"""How many local days before ``since`` are generated again by `continue_sales`.

Older sales get no new refunds, because a refund is at most 12 × 24 hours after its sale. If clocks
are set forward in this time, the local dates of sale and refund can be 13 days apart.
"""


class NoSandboxError(Exception):
    """The organization does not exist, its data was not generated, or it has no sales."""


def stored_plan(session: Session, organization_id: str) -> Plan:
    """Return the plan from which the sandbox was loaded. Raises NoSandboxError."""
    organization = session.get(Organization, organization_id)
    if organization is None or organization.sandbox is None:
        raise NoSandboxError(f"organization {organization_id} is not a sandbox")
    return Plan.from_json(organization.sandbox)


def stored_generator(session: Session, plan: Plan) -> tuple[DayGenerator, list[Venue]]:
    """Return the generator that the sandbox was loaded with, and its venues."""
    venues, methods = load_locations(session, plan)
    return DayGenerator(plan, load_catalog(session, plan), methods), venues


def last_sale_at(session: Session, organization_id: str) -> datetime:
    """Return when the newest sale was made. Raises NoSandboxError."""
    query = select(func.max(Sale.initiated_at)).where(Sale.organization_id == organization_id)
    newest = session.execute(query).scalar_one()
    if newest is None:
        raise NoSandboxError(f"organization {organization_id} has no sales to continue from")
    return newest


def continue_sales(
    session: Session,
    generator: DayGenerator,
    venues: Sequence[Venue],
    since: datetime,
    until: datetime,
) -> tuple[int, int]:
    """Write the transactions after ``since`` and up to ``until``, and update the rollups.

    Afterwards the database contains the same data as after a load up to ``until``. Sales before
    ``since`` are generated again, because some of their refunds may be due now. These sales are not
    written again.

    Returns:
        The number of written sales, and of written refunds.
    """
    sales = refunds = 0
    for venue in venues:
        first = hour_of(since, venue.clock.zone) // DAY_HOURS - REFUND_DAYS
        for day in range(first, hour_of(until, venue.clock.zone) // DAY_HOURS + 1):
            for transaction in generator.transactions(venue, day):
                position = 0
                if since < transaction.sale.initiated_at <= until:
                    position = add_sale(session, transaction.sale, transaction.sale.initiated_at)
                    sales += 1
                refunds += _add_refunds(session, transaction, position, since, until)
    return sales, refunds


def _add_refunds(
    session: Session, transaction: Transaction, position: int, since: datetime, until: datetime
) -> int:
    """Write the due refunds of a transaction. Return the number of written refunds.

    Args:
        position: The position of the sale if it was just written, otherwise 0.
    """
    count = 0
    for refund in transaction.refunds:
        at = refund.refunded_at
        # A refund without a date is written together with its sale.
        is_due = position > 0 if at is None else since < at <= until
        if not is_due:
            continue
        sale = position or _position(session, Sale, transaction.sale.id)
        if sale and not _position(session, Refund, refund.id):
            written_at = at or transaction.sale.initiated_at
            add_refund(session, replace(refund, sale=sale), written_at)
            count += 1
    return count


def _position(session: Session, table: type[Sale] | type[Refund], row_id: UUID) -> int:
    """Return the position of a row, 0 if it is not stored."""
    return session.execute(select(table.position).where(table.id == row_id)).scalar() or 0
