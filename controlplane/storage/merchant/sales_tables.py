"""Sales, payments and refunds.

Money is in minor units of the row's ``currency``. ``local_hour`` is the time of the sale or refund
as an hour in the local time of the location: 24 × the number of days since 1970-01-01, plus the
hour of the day (`controlplane.figures.local_time`). A column that refers to another row, such as
``location``, ``sale`` or ``payment_method``, contains the ``position`` of that row.
`controlplane.merchant` writes each sale or refund together with its rollups. Only the commands
``sandbox load`` and ``sandbox import`` write all sales and refunds first, and then compute all
rollups.
"""

from uuid import UUID

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from controlplane.storage.merchant.columns import (
    ExternalData,
    Money,
    OptionalTimestamp,
    OptionalWide,
    RowPosition,
    Timestamp,
    Wide,
)
from controlplane.storage.tables import Base


class Sale(Base):
    """A sale.

    Attributes:
        number, ticket_number: the numbers on the receipt. Ticket numbers are short and repeat.
        status: completed, or unknown for an imported order that could not be resolved.
        initiated_at: time of the sale. ``created_at`` and ``updated_at`` are times of the row.
        gross: the list price of all goods. For a sale without lines, ``total`` + ``discount``.
        discount: discount on the whole sale, in addition to the discounts of its lines.
        total: the sum of the totals of the lines, minus ``discount``. Includes tax.
        taxable_amount: ``total`` − ``tax``.
        tax: the known tax in ``total``.
        municipality_fee, tip: paid in addition to ``total``.
        has_lines: False if it is unknown what was sold.
        pieces: number of sold pieces. A weighed or measured quantity is one piece.
        unknown_tax_lines: number of lines with an unknown tax.
        payment_type: the type of the payments, or mixed if their types differ.
        payment_method: the method of the payments. None if the methods differ or one is unknown.
    """

    __tablename__ = "sales"
    __table_args__ = (
        Index("sales_by_moment", "organization_id", "initiated_at", "position"),
        Index("sales_by_creation", "organization_id", "created_at", "position"),
        Index("sales_by_change", "organization_id", "updated_at", "position"),
        Index("sales_by_number", "organization_id", "number", "position"),
        Index("sales_by_location", "location", "initiated_at"),
    )
    position: Mapped[RowPosition]
    id: Mapped[UUID] = mapped_column(unique=True)
    organization_id: Mapped[str]
    location: Mapped[int]
    point_of_sale: Mapped[int]
    employee: Mapped[int | None]
    number: Mapped[str]
    ticket_number: Mapped[str]
    status: Mapped[str]
    initiated_at: Mapped[Timestamp]
    created_at: Mapped[Timestamp]
    updated_at: Mapped[Timestamp]
    local_hour: Mapped[int]
    comment: Mapped[str | None]
    external_data: Mapped[ExternalData]
    currency: Mapped[str]
    gross: Mapped[Money]
    discount: Mapped[Money]
    total: Mapped[Money]
    taxable_amount: Mapped[Money]
    tax: Mapped[Money]
    municipality_fee: Mapped[Money]
    tip: Mapped[Money]
    has_lines: Mapped[bool]
    pieces: Mapped[Wide]
    unknown_tax_lines: Mapped[int]
    payment_type: Mapped[str]
    payment_method: Mapped[int | None]


class SaleLine(Base):
    """A line of a sale. ``number`` counts from 1.

    ``snapshot`` refers to the `LineSnapshot`, which defines the unit and the exponent. The quantity
    in units is ``quantity`` × 10^-``exponent``. ``unit_price`` is the list price of one unit.
    ``gross`` = list price × quantity, and ``total`` = ``gross`` − ``discount``. ``share`` is the
    line's part of the discount on the whole sale. ``tax`` is the tax in ``total`` − ``share``, or
    None if it is unknown.
    """

    __tablename__ = "sale_lines"
    __table_args__ = ({"sqlite_with_rowid": False},)
    sale: Mapped[Wide] = mapped_column(primary_key=True, autoincrement=False)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    snapshot: Mapped[Wide]
    quantity: Mapped[Wide]
    unit_price: Mapped[Money]
    gross: Mapped[Money]
    discount: Mapped[Money]
    share: Mapped[Money]
    total: Mapped[Money]
    tax: Mapped[OptionalWide]


class SalePayment(Base):
    """A payment of a sale. ``method`` is None if the payment method is unknown.

    ``amount`` is a part of the sum of the total, the municipality fee and the tip of the sale.
    """

    __tablename__ = "sale_payments"
    __table_args__ = ({"sqlite_with_rowid": False},)
    sale: Mapped[Wide] = mapped_column(primary_key=True, autoincrement=False)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    method: Mapped[int | None]
    amount: Mapped[Money]


class Refund(Base):
    """A refund of a sale, at the sale's location and in its currency.

    ``refunded_at`` and ``local_hour`` are None if the date is unknown. ``goods``, ``fee`` and
    ``tip`` are the refunded amounts. If only their sum is known, ``has_components`` is False, and
    ``goods`` is the sum. ``tax`` is the tax in ``goods``, None if it is unknown.
    """

    __tablename__ = "refunds"
    __table_args__ = (
        Index("refunds_by_sale", "sale"),
        Index("refunds_by_location", "location", "refunded_at"),
    )
    position: Mapped[RowPosition]
    id: Mapped[UUID] = mapped_column(unique=True)
    sale: Mapped[Wide]
    organization_id: Mapped[str]
    location: Mapped[int]
    employee: Mapped[int | None]
    refunded_at: Mapped[OptionalTimestamp]
    created_at: Mapped[Timestamp]
    local_hour: Mapped[int | None]
    currency: Mapped[str]
    goods: Mapped[Money]
    fee: Mapped[Money]
    tip: Mapped[Money]
    tax: Mapped[OptionalWide]
    has_components: Mapped[bool]
    payment_type: Mapped[str]
    payment_method: Mapped[int | None]


class RefundLine(Base):
    """A refunded line. ``line`` is the number of the line in the sale. ``amount`` includes tax."""

    __tablename__ = "refund_lines"
    __table_args__ = ({"sqlite_with_rowid": False},)
    refund: Mapped[Wide] = mapped_column(primary_key=True, autoincrement=False)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    line: Mapped[int]
    quantity: Mapped[Wide]
    amount: Mapped[Money]
