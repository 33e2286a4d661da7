"""Converts sales and refunds to rows.

A row of a sale or refund has the values of all columns except ``position``, the primary key, in the
order of the columns. Rows of lines and payments begin with the ``position`` of their sale or
refund.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from controlplane.merchant.sales import (
    LineRow,
    NewRefund,
    NewSale,
    SaleMoney,
    way_of_payment,
)
from controlplane.storage.merchant.columns import microseconds
from controlplane.storage.merchant.sales_tables import Sale

Row = tuple[Any, ...]


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
