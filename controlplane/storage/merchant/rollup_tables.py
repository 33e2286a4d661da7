"""Sums over sales and refunds (rollups). Figures are computed from them.

The transaction that writes a sale or refund also updates the sums. ``hour`` and ``day`` are in the
local time of the location. ``day`` is the number of days since 1970-01-01, and ``hour`` is
``day`` × 24 plus the hour of the day. An hour that occurs twice, because clocks are set back, is
one row.

A sale is added to the row of its time and, if the table has the column, of its payment type.
``discount`` is the sum of the discounts on whole sales and on their lines.

A refund with a date is added to the row of its own time and payment type. ``refund`` is the sum of
the refunded goods, without fee and tip. A refund without a date is added, with fee and tip, to the
``undated_`` columns in the row of its sale. Only `DayRollup` has these columns. The goods of every
refund, without fee and tip, are added to ``undone`` in the row of its sale.

``location``, ``payment_method`` and ``snapshot`` contain the ``position`` of a location, a payment
method, and the `LineSnapshot` of the sold article. A missing payment method or snapshot is stored
as 0, and a missing unit as "", because a primary key cannot contain NULL.
"""

from sqlalchemy.orm import Mapped, mapped_column

from controlplane.storage.merchant.columns import Money, Wide
from controlplane.storage.tables import Base

COMPACT = ({"sqlite_with_rowid": False},)
"""SQLite stores the rows in the index of the primary key, without a separate table."""


class HourRollup(Base):
    """Sums of an hour.

    ``undone`` is the money that was refunded for goods of the hour's sales. All refunds of these
    sales are included, also later ones and those without a date.
    """

    __tablename__ = "hour_rollups"
    __table_args__ = COMPACT
    location: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    hour: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    currency: Mapped[str] = mapped_column(primary_key=True)
    gross: Mapped[Money]
    discount: Mapped[Money]
    sale_count: Mapped[Wide]
    refund: Mapped[Money]
    refund_count: Mapped[Wide]
    undone: Mapped[Money]


class DayRollup(Base):
    """Sums of a day.

    ``sale_tax`` and ``refund_tax`` contain known taxes only. The ``missing_`` columns are sums over
    sales without lines. The ``undated_`` columns are sums over refunds without a date. The
    ``unresolved_`` columns are sums over imported orders of unknown status. No other column
    includes these orders. ``refund_unknown_tax`` counts dated refunds with an unknown tax.
    ``refund_unknown_components`` counts dated refunds of which only the sum is known, and not
    its division into goods, fee and tip. The whole sum is then added as goods.
    """

    __tablename__ = "day_rollups"
    __table_args__ = COMPACT
    location: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    currency: Mapped[str] = mapped_column(primary_key=True)
    payment_type: Mapped[str] = mapped_column(primary_key=True)
    payment_method: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    gross: Mapped[Money]
    discount: Mapped[Money]
    sale_count: Mapped[Wide]
    pieces: Mapped[Wide]
    municipality_fee: Mapped[Money]
    tip: Mapped[Money]
    sale_tax: Mapped[Money]
    unknown_tax_lines: Mapped[Wide]
    missing_count: Mapped[Wide]
    missing_amount: Mapped[Money]
    unresolved_count: Mapped[Wide]
    unresolved_amount: Mapped[Money]
    undated_count: Mapped[Wide]
    undated_amount: Mapped[Money]
    undone: Mapped[Money]
    refund: Mapped[Money]
    refund_count: Mapped[Wide]
    refunded_fee: Mapped[Money]
    refunded_tip: Mapped[Money]
    refund_tax: Mapped[Money]
    refund_unknown_tax: Mapped[Wide]
    refund_unknown_components: Mapped[Wide]


class UnitRollup(Base):
    """Sold quantities, in thousandths of the unit. ``unit`` is its symbol, such as kg."""

    __tablename__ = "unit_rollups"
    __table_args__ = COMPACT
    location: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    currency: Mapped[str] = mapped_column(primary_key=True)
    payment_type: Mapped[str] = mapped_column(primary_key=True)
    unit: Mapped[str] = mapped_column(primary_key=True)
    quantity_milli: Mapped[Wide]
    line_count: Mapped[Wide]


class ItemSums:
    """Sums of an article. ``discount`` includes the article's share of discounts on whole sales.

    Quantities are in thousandths of the unit.
    """

    quantity_milli: Mapped[Wide]
    line_count: Mapped[Wide]
    gross: Mapped[Money]
    discount: Mapped[Money]
    refunded_milli: Mapped[Wide]
    refund: Mapped[Money]


class ItemDayRollup(ItemSums, Base):
    __tablename__ = "item_day_rollups"
    __table_args__ = COMPACT
    location: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    currency: Mapped[str] = mapped_column(primary_key=True)
    snapshot: Mapped[Wide] = mapped_column(primary_key=True, autoincrement=False)
    payment_type: Mapped[str] = mapped_column(primary_key=True)


class ItemSpanRollup(ItemSums, Base):
    """Sums of `ItemDayRollup` over spans of eight days, for long periods. ``span`` = day // 8."""

    __tablename__ = "item_span_rollups"
    __table_args__ = COMPACT
    location: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    span: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    currency: Mapped[str] = mapped_column(primary_key=True)
    snapshot: Mapped[Wide] = mapped_column(primary_key=True, autoincrement=False)


ROLLUPS = (HourRollup, DayRollup, UnitRollup, ItemDayRollup, ItemSpanRollup)
"""All rollups, in the order in which they are written."""
