"""Sales, payments and refunds.

Money is in minor units of the row's ``currency``. ``local_hour`` is the row's moment as the
location's clocks show it: days since 1970-01-01, times 24, plus the hour
(`controlplane.figures.local_time`). Rows are written by `controlplane.merchant` only, together with
the rollups that they belong to.
"""

from uuid import UUID

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from controlplane.storage.merchant.columns import (
    ExternalData,
    MaybeWide,
    Money,
    OptionalTimestamp,
    RowPosition,
    Timestamp,
    Wide,
)
from controlplane.storage.tables import Base


class Sale(Base):
    """``status``: completed, or unknown for an imported order that nobody could resolve.

    Goods: ``total`` = Σ lines' totals − ``discount``, tax included; ``tax`` is the tax in it as
    far as it is known, ``taxable_amount`` the rest. ``municipality_fee`` and ``tip`` are paid
    beside it. ``has_lines`` False: nothing tells what was sold, ``gross`` is ``total`` and
    ``discount``. ``payment_type`` sums the payments up: mixed where they are of two types;
    ``payment_method`` is that of all of them, or None. ``gross`` is at list prices; ``pieces`` and
    ``unknown_tax_lines`` count over the lines.
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
    """``number`` counts from 1. ``quantity`` is in 10^-exponent of the snapshot's unit.

    ``gross`` = list price × quantity, ``total`` = ``gross`` − ``discount``; ``share`` is its
    part of the sale's discount. ``tax`` is what ``total`` − ``share`` contains, None where it is
    not known.
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
    tax: Mapped[MaybeWide]


class SalePayment(Base):
    """``amount`` is part of total, municipality fee and tip. ``method`` None: not written down."""

    __tablename__ = "sale_payments"
    __table_args__ = ({"sqlite_with_rowid": False},)
    sale: Mapped[Wide] = mapped_column(primary_key=True, autoincrement=False)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    method: Mapped[int | None]
    amount: Mapped[Money]


class Refund(Base):
    """Money that went back for a sale, at the sale's location and in its currency.

    ``refunded_at`` and ``local_hour`` are None if the date is unknown. ``goods``, ``fee`` and
    ``tip`` are what went back for each; where that is not known, ``has_components`` is False and
    all of it stands in ``goods``. ``tax`` is the tax in ``goods``, None where it is not known.
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
    tax: Mapped[MaybeWide]
    has_components: Mapped[bool]
    payment_type: Mapped[str]
    payment_method: Mapped[int | None]


class RefundLine(Base):
    """``line`` is the number of the sale's line, ``amount`` the goods' money, tax included."""

    __tablename__ = "refund_lines"
    __table_args__ = ({"sqlite_with_rowid": False},)
    refund: Mapped[Wide] = mapped_column(primary_key=True, autoincrement=False)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    line: Mapped[int]
    quantity: Mapped[Wide]
    amount: Mapped[Money]
