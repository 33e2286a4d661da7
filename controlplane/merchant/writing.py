"""Writes a sale or a refund and its rollups in the caller's transaction.

Functions raise SaleError for inconsistent input.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from controlplane.figures.local_time import clock_of, hour_of
from controlplane.figures.money import milli
from controlplane.merchant import contributions
from controlplane.merchant.contributions import Contributions, RollupKey
from controlplane.merchant.rows import (
    line_table_rows,
    payment_rows,
    refund_line_rows,
    refund_row,
    sale_row,
)
from controlplane.merchant.sales import (
    COMPLETED,
    LineRow,
    NewRefund,
    NewSale,
    SaleError,
    SoldArticle,
    line_rows,
    money_of,
    refund_tax,
    way_of_payment,
)
from controlplane.storage.merchant.catalog_tables import LineSnapshot
from controlplane.storage.merchant.merchant_tables import Location
from controlplane.storage.merchant.sales_tables import (
    Refund,
    RefundLine,
    Sale,
    SaleLine,
    SalePayment,
)
from controlplane.storage.statements import add_to_sums, insert_row, insert_rows


def add_sale(session: Session, sale: NewSale, now: datetime) -> int:
    """Write a sale and update the rollups. Returns the position of the sale."""
    lines = line_rows(sale)
    money = money_of(sale, lines)
    kind, method = way_of_payment(sale.payments)
    hour = _local_hour(session, sale.location, sale.initiated_at)
    position = insert_row(session, Sale, sale_row(sale, money, hour, now, now))
    insert_rows(session, SaleLine, line_table_rows(position, lines))
    insert_rows(session, SalePayment, payment_rows(position, sale))
    rollup_key = RollupKey(sale.location, hour, sale.currency, kind, method)
    if sale.status == COMPLETED:
        sums = contributions.of_sale(rollup_key, sale, money, lines)
    else:
        sums = contributions.of_unresolved_order(rollup_key, money.total)
    add_to_rollups(session, sums)
    return position


def add_refund(session: Session, refund: NewRefund, now: datetime) -> int:
    """Write a refund, and update the rollups and the time of the sale's last change.

    Returns:
        The position of the refund.
    """
    sale = session.scalars(select(Sale).where(Sale.position == refund.sale).with_for_update()).one()
    if sale.status != COMPLETED:
        raise SaleError("only a completed sale can be refunded")
    _refuse_more_than_paid(session, sale, refund)
    lines = _lines_of(session, sale.position)
    articles = articles_of(session, {line.snapshot for line in lines.values()})
    if refund.lines and sum(line.amount for line in refund.lines) != refund.goods:
        raise SaleError("the amounts of the refunded lines do not add up to the refunded goods")
    tax = refund_tax(refund, lines, articles)
    hour = None
    if refund.refunded_at is not None:
        hour = _local_hour(session, sale.location, refund.refunded_at)
    position = insert_row(session, Refund, refund_row(refund, sale, tax, hour, now))
    insert_rows(session, RefundLine, refund_line_rows(position, refund))
    session.execute(update(Sale).where(Sale.position == sale.position).values(updated_at=now))
    snapshots = [lines[line.line].snapshot for line in refund.lines]
    items = [
        (snapshot, milli(line.quantity, articles[snapshot].exponent), line.amount)
        for snapshot, line in zip(snapshots, refund.lines, strict=True)
    ]
    sale_key = RollupKey(
        sale.location, sale.local_hour, sale.currency, sale.payment_type, sale.payment_method
    )
    refund_key = None if hour is None else RollupKey(
        sale.location, hour, sale.currency, refund.payment.type, refund.payment.method
    )  # fmt: skip
    add_to_rollups(session, contributions.of_refund(sale_key, refund_key, refund, tax, items))
    return position


def add_to_rollups(session: Session, sums: Contributions) -> None:
    for rollup, rows in sums.rows():
        add_to_sums(session, rollup, rows)


def articles_of(session: Session, snapshots: set[int]) -> dict[int, SoldArticle]:
    """Return the sold articles by the row key (``position``) of their snapshot.

    ``snapshots`` are these row keys.
    """
    rows = session.scalars(select(LineSnapshot).where(LineSnapshot.position.in_(snapshots)))
    return {row.position: article_of(row) for row in rows}


def article_of(snapshot: LineSnapshot) -> SoldArticle:
    return SoldArticle(
        snapshot.position,
        snapshot.uom_symbol,
        snapshot.exponent,
        snapshot.percentage_milli,
        has_known_tax=snapshot.fee_item_id is not None,
    )


def _local_hour(session: Session, location: int, timestamp: datetime) -> int:
    # The row is locked, so that the time zone does not change before the rollups are written.
    zone = session.execute(
        select(Location.zone).where(Location.position == location).with_for_update(read=True)
    ).scalar_one()
    return hour_of(timestamp, clock_of(zone).zone)


def _lines_of(session: Session, sale: int) -> dict[int, LineRow]:
    columns = (getattr(SaleLine, name) for name in LineRow._fields)
    rows = session.execute(select(*columns).where(SaleLine.sale == sale))
    return {row.number: LineRow(*row) for row in rows}


def _refuse_more_than_paid(session: Session, sale: Sale, refund: NewRefund) -> None:
    refunded_before: Any = session.execute(
        select(func.coalesce(func.sum(Refund.goods + Refund.fee + Refund.tip), 0)).where(
            Refund.sale == sale.position
        )
    ).scalar_one()
    amount = int(refunded_before) + refund.goods + refund.fee + refund.tip
    if amount > sale.total + sale.municipality_fee + sale.tip:
        raise SaleError("the refunds are higher than the payments")
