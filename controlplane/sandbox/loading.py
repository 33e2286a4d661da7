"""Writes a sandbox to the database: locations, catalog, the transactions of each day, and rollups.

The whole load is one database transaction, so an interrupted load writes nothing. Later calls of
`continue_sales` write the sales of a stored sandbox as time passes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from controlplane.figures.local_time import DAY_HOURS, Clock, hour_of
from controlplane.merchant.rebuild import rebuild
from controlplane.merchant.sales import LineRow, NewRefund, line_rows, money_of, refund_tax
from controlplane.merchant.writing import (
    add_refund,
    add_sale,
    line_table_rows,
    payment_rows,
    refund_line_rows,
    refund_row,
    sale_row,
)
from controlplane.sandbox.catalog import load_catalog, make_catalog
from controlplane.sandbox.generator import DayGenerator, Transaction
from controlplane.sandbox.locations import Venue, create_locations, load_locations
from controlplane.sandbox.plan import Plan
from controlplane.storage.merchant.merchant_tables import Organization
from controlplane.storage.merchant.sales_tables import (
    Refund,
    RefundLine,
    Sale,
    SaleLine,
    SalePayment,
)
from controlplane.storage.statements import Row, advance_position, insert_rows

BATCH: Final = 5_000
"""Number of sales that are written at once."""
TABLES: Final = (Sale, SaleLine, SalePayment, Refund, RefundLine)
REFUND_DAYS: Final = 13
"""`continue_sales` generates this many local days before its argument ``since`` again.

Older sales get no new refunds, because a refund is at most 12 × 24 hours after its sale. If clocks
are set forward in this time, the local dates of sale and refund can be 13 days apart.
"""


class OccupiedError(Exception):
    """The organization, or a row with one of the new ids, exists already."""


class NoSandboxError(Exception):
    """The organization does not exist, its data was not generated, or it has no sales."""


@dataclass(slots=True)
class LoadCounts:
    locations: int = 0
    sales: int = 0
    refunds: int = 0


def load(
    session: Session,
    plan: Plan,
    until: datetime,
    progress: Callable[[LoadCounts], None] = lambda _counts: None,
) -> LoadCounts:
    """Write the sandbox of a plan, with its transactions up to ``until``. Raises OccupiedError.

    ``progress`` is called with the counts after every `BATCH` sales.
    """
    if session.get(Organization, plan.organization_id) is not None:
        raise OccupiedError(f"organization {plan.organization_id} exists already")
    venues, methods = create_locations(session, plan)
    generator = DayGenerator(plan, make_catalog(session, plan), methods)
    writer = BulkWriter(session)
    counts = LoadCounts(locations=len(venues))
    for transaction, venue in _transactions(generator, venues, until):
        writer.write(transaction, venue.clock)
        counts.sales += 1
        counts.refunds += len(transaction.refunds)
        if counts.sales % BATCH == 0:
            progress(counts)
    writer.flush()
    for table in (Sale, Refund):
        advance_position(session.connection(), table.__table__)
    rebuild(session)
    return counts


def _transactions(
    generator: DayGenerator, venues: Sequence[Venue], until: datetime
) -> Iterator[tuple[Transaction, Venue]]:
    # The day after the last one is included: east of UTC, it begins before the last day has ended
    # in UTC.
    for day in range(generator.plan.first_day, generator.plan.last_day + 2):
        for venue in venues:
            for transaction in generator.transactions(venue, day):
                if transaction.sale.initiated_at <= until:
                    refunds = (refund for refund in transaction.refunds if _is_due(refund, until))
                    yield replace(transaction, refunds=tuple(refunds)), venue


def _is_due(refund: NewRefund, now: datetime) -> bool:
    return refund.refunded_at is None or refund.refunded_at <= now


class BulkWriter:
    """Writes transactions in batches, and assigns the row keys (``position``) of sales and refunds.

    It does not write rollups.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sale_position = self._last_position(Sale)
        self._refund_position = self._last_position(Refund)
        self._rows: dict[Any, list[Row]] = {table: [] for table in TABLES}

    def write(self, transaction: Transaction, clock: Clock) -> None:
        sale = transaction.sale
        self._sale_position += 1
        lines = line_rows(sale)
        changed_at = max(
            (_created_at(refund, transaction) for refund in transaction.refunds),
            default=sale.initiated_at,
        )
        hour = hour_of(sale.initiated_at, clock.zone)
        row = sale_row(sale, money_of(sale, lines), hour, sale.initiated_at, changed_at)
        self._rows[Sale].append((self._sale_position, *row))
        self._rows[SaleLine] += line_table_rows(self._sale_position, lines)
        self._rows[SalePayment] += payment_rows(self._sale_position, sale)
        for refund in transaction.refunds:
            self._write_refund(replace(refund, sale=self._sale_position), transaction, lines, clock)
        if len(self._rows[Sale]) >= BATCH:
            self.flush()

    def flush(self) -> None:
        for table, rows in self._rows.items():
            insert_rows(self._session, table, rows)
            rows.clear()

    def _write_refund(
        self, refund: NewRefund, transaction: Transaction, lines: list[LineRow], clock: Clock
    ) -> None:
        self._refund_position += 1
        articles = {line.article.snapshot: line.article for line in transaction.sale.lines or ()}
        tax = refund_tax(refund, {line.number: line for line in lines}, articles)
        at = refund.refunded_at
        hour = None if at is None else hour_of(at, clock.zone)
        row = refund_row(refund, transaction.sale, tax, hour, _created_at(refund, transaction))
        self._rows[Refund].append((self._refund_position, *row))
        self._rows[RefundLine] += refund_line_rows(self._refund_position, refund)

    def _last_position(self, table: type[Sale] | type[Refund]) -> int:
        return self._session.execute(select(func.max(table.position))).scalar_one() or 0


def _created_at(refund: NewRefund, transaction: Transaction) -> datetime:
    return refund.refunded_at or transaction.sale.initiated_at


def stored_plan(session: Session, organization_id: str) -> Plan:
    """Return the plan from which the sandbox was loaded. Raises NoSandboxError."""
    organization = session.get(Organization, organization_id)
    if organization is None or organization.sandbox is None:
        raise NoSandboxError(f"organization {organization_id} is not a sandbox")
    return Plan.from_json(organization.sandbox)


def stored_generator(session: Session, plan: Plan) -> tuple[DayGenerator, list[Venue]]:
    """Return the generator that the sandbox was loaded with, and the venues of the sandbox."""
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
        position: The sale's row key if the sale was just written, otherwise 0.
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
    """Return the row key of the row with this id, or 0 if there is no such row."""
    return session.execute(select(table.position).where(table.id == row_id)).scalar() or 0
