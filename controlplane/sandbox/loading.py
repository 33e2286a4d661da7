"""Writes a sandbox into the database: places, catalog, every day's deals, then the rollups at once.

On an SQLite file the load waits for no disk: a load that is cut off leaves a file to be thrown away
or loaded again, as nothing is committed before its end.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from controlplane.figures.local_time import Clock, hour_of
from controlplane.merchant.rebuild import rebuild
from controlplane.merchant.rows import (
    Row,
    line_table_rows,
    payment_rows,
    refund_line_rows,
    refund_row,
    sale_row,
)
from controlplane.merchant.sales import LineRow, NewRefund, line_rows, money_of, refund_tax
from controlplane.sandbox.catalog import Shelf, make_catalog
from controlplane.sandbox.places import Venue, make_places
from controlplane.sandbox.plan import Plan
from controlplane.sandbox.trade import Deal, Trade, trade
from controlplane.storage.merchant.merchant_tables import Organization
from controlplane.storage.merchant.sales_tables import (
    Refund,
    RefundLine,
    Sale,
    SaleLine,
    SalePayment,
)
from controlplane.storage.statements import insert_rows

BATCH: Final = 5_000
TABLES: Final = (Sale, SaleLine, SalePayment, Refund, RefundLine)


class OccupiedError(Exception):
    """The organization has data already."""


@dataclass(slots=True)
class Loaded:
    locations: int = 0
    sales: int = 0
    refunds: int = 0


def load(
    session: Session,
    plan: Plan,
    until: datetime,
    progress: Callable[[Loaded], None] = lambda _loaded: None,
) -> Loaded:
    """Write what happened until that moment. Raises OccupiedError."""
    if session.get(Organization, plan.organization_id) is not None:
        raise OccupiedError(f"organization {plan.organization_id} is there already")
    venues, ways = make_places(session, plan)
    catalog = make_catalog(Shelf(session), plan)
    session.flush()
    writer = BulkWriter(session)
    loaded = Loaded(locations=len(venues))
    for deal, venue in _deals(trade(plan, catalog, ways), venues, until):
        writer.write(deal, venue.clock)
        loaded.sales += 1
        loaded.refunds += len(deal.refunds)
        if loaded.sales % BATCH == 0:
            progress(loaded)
    writer.flush()
    advance(session, "sales", "refunds")
    rebuild(session)
    return loaded


def _deals(trade: Trade, venues: Iterable[Venue], until: datetime) -> Iterator[tuple[Deal, Venue]]:
    venues = list(venues)
    # A day more: where it is tomorrow already, tomorrow's first sales have happened.
    for day in range(trade.plan.first_day, trade.plan.last_day + 2):
        for venue in venues:
            for deal in trade.day(venue, day):
                if deal.sale.initiated_at <= until:
                    refunds = tuple(each for each in deal.refunds if known_at(each, until))
                    yield replace(deal, refunds=refunds), venue


def known_at(refund: NewRefund, moment: datetime) -> bool:
    return refund.refunded_at is None or refund.refunded_at <= moment


class BulkWriter:
    """Writes deals in batches, without rollups, and numbers the rows itself."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sale = self._last(Sale)
        self._refund = self._last(Refund)
        self._rows: dict[Any, list[Row]] = {table: [] for table in TABLES}

    def write(self, deal: Deal, clock: Clock) -> None:
        sale = deal.sale
        self._sale += 1
        lines = line_rows(sale)
        changed = max((_made(each, deal) for each in deal.refunds), default=sale.initiated_at)
        hour = hour_of(sale.initiated_at, clock.zone)
        row = sale_row(sale, money_of(sale, lines), hour, sale.initiated_at, changed)
        self._rows[Sale].append((self._sale, *row))
        self._rows[SaleLine] += line_table_rows(self._sale, lines)
        self._rows[SalePayment] += payment_rows(self._sale, sale)
        for refund in deal.refunds:
            self._write_refund(replace(refund, sale=self._sale), deal, lines, clock)
        if len(self._rows[Sale]) >= BATCH:
            self.flush()

    def flush(self) -> None:
        for table, rows in self._rows.items():
            insert_rows(self._session, table, rows)
            rows.clear()

    def _write_refund(
        self, refund: NewRefund, deal: Deal, lines: list[LineRow], clock: Clock
    ) -> None:
        self._refund += 1
        articles = {line.article.snapshot: line.article for line in deal.sale.lines or ()}
        tax = refund_tax(refund, {line.number: line for line in lines}, articles)
        at = refund.refunded_at
        hour = None if at is None else hour_of(at, clock.zone)
        row = refund_row(refund, deal.sale, tax, hour, _made(refund, deal))
        self._rows[Refund].append((self._refund, *row))
        self._rows[RefundLine] += refund_line_rows(self._refund, refund)

    def _last(self, table: type[Sale] | type[Refund]) -> int:
        return self._session.execute(select(func.max(table.position))).scalar_one() or 0


def _made(refund: NewRefund, deal: Deal) -> datetime:
    return refund.refunded_at or deal.sale.initiated_at


def advance(session: Session, *tables: str) -> None:
    """Tell PostgreSQL which positions are taken; SQLite looks for itself."""
    if session.get_bind().dialect.name != "postgresql":
        return
    for table in tables:
        session.execute(
            text(
                "SELECT setval(pg_get_serial_sequence(:name, 'position'),"
                f" (SELECT COALESCE(MAX(position), 1) FROM {table}))"
            ),
            {"name": table},
        )
