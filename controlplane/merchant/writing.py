"""Writes a sale or a refund and its rollups in the caller's transaction.

Functions raise SaleError for inconsistent input.

A row of a sale or refund has the values of all columns except ``position``, the primary key, in the
order of the columns. Rows of lines and payments begin with the ``position`` of their sale or
refund.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from controlplane.figures.local_time import clock_of, hour_of
from controlplane.figures.money import milli
from controlplane.merchant import contributions
from controlplane.merchant.contributions import Contributions, RollupKey
from controlplane.merchant.sales import (
    COMPLETED,
    LineRow,
    NewRefund,
    NewSale,
    SaleError,
    SaleMoney,
    SoldArticle,
    line_rows,
    money_of,
    refund_tax,
    way_of_payment,
)
from controlplane.storage.merchant.catalog_tables import LineSnapshot
from controlplane.storage.merchant.columns import microseconds
from controlplane.storage.merchant.merchant_tables import Location
from controlplane.storage.merchant.sales_tables import (
    Refund,
    RefundLine,
    Sale,
    SaleLine,
    SalePayment,
)
from controlplane.storage.statements import Row, add_to_sums, insert_row, insert_rows


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


# ---------------------------------------------------------------------------- rows


def sale_row(
    sale: NewSale, money: SaleMoney, hour: int, created_at: datetime, changed_at: datetime
) -> Row:
    """Return the row of a sale.

    Args:
        hour: The local hour of the sale, counted from 1970-01-01.
        created_at: The time at which the row is created.
        changed_at: The time of the row's last change.
    """
    kind, method = way_of_payment(sale.payments)
    return (
        sale.id.hex,
        sale.organization_id,
        sale.location,
        sale.point_of_sale,
        sale.employee,
        sale.number,
        sale.ticket_number,
        sale.status,
        microseconds(sale.initiated_at),
        microseconds(created_at),
        microseconds(changed_at),
        hour,
        sale.comment,
        None if sale.external_data is None else json.dumps(sale.external_data),
        sale.currency,
        money.gross,
        sale.discount,
        money.total,
        money.taxable_amount,
        money.tax,
        sale.municipality_fee,
        sale.tip,
        sale.lines is not None,
        money.pieces,
        money.unknown_tax_lines,
        kind,
        method,
    )


def line_table_rows(sale: int, lines: Sequence[LineRow]) -> list[Row]:
    return [(sale, *line) for line in lines]


def payment_rows(position: int, sale: NewSale) -> list[Row]:
    return [
        (position, number, payment.method, payment.amount)
        for number, payment in enumerate(sale.payments, 1)
    ]


def refund_row(
    refund: NewRefund, sale: Sale | NewSale, tax: int | None, hour: int | None, created_at: datetime
) -> Row:
    refunded_at = refund.refunded_at
    return (
        refund.id.hex,
        refund.sale,
        sale.organization_id,
        sale.location,
        refund.employee,
        None if refunded_at is None else microseconds(refunded_at),
        microseconds(created_at),
        hour,
        sale.currency,
        refund.goods,
        refund.fee,
        refund.tip,
        tax,
        refund.has_components,
        refund.payment.type,
        refund.payment.method,
    )


def refund_line_rows(position: int, refund: NewRefund) -> list[Row]:
    return [
        (position, number, line.line, line.quantity, line.amount)
        for number, line in enumerate(refund.lines, 1)
    ]
