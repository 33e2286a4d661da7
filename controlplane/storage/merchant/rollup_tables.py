"""Sums over sales and refunds, written in the transaction of each; figures read nothing else.

``hour`` and ``day`` are local to the location: ``day`` counts from 1970-01-01, ``hour`` is
``day`` × 24 plus the hour that clocks show. A day of 25 hours has one hour twice: both are one row.
What belongs to a sale stands at the sale's time and way of payment, what belongs to a refund at the
refund's. Method, unit and snapshot are 0 or "" for none: a primary key holds no NULL.
"""

from sqlalchemy.orm import Mapped, mapped_column

from controlplane.storage.merchant.columns import Money, Wide
from controlplane.storage.tables import Base

COMPACT = ({"sqlite_with_rowid": False},)


class HourRollup(Base):
    """Sums of an hour. ``undone`` is what was refunded, at any time, of sales of this hour."""

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
    """All sums of the figures. ``sale_tax`` and ``refund_tax`` are what is known; ``missing_``
    is about sales without lines, ``unresolved_`` about orders, ``undated_`` about refunds."""

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
    """Sold quantities, in thousandths of ``unit``."""

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
    """``discount`` holds the line's own and its share of the sale's; quantities in thousandths."""

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
    """The same over spans of eight days, ``span`` = day // 8, for windows of months."""

    __tablename__ = "item_span_rollups"
    __table_args__ = COMPACT
    location: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    span: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    currency: Mapped[str] = mapped_column(primary_key=True)
    snapshot: Mapped[Wide] = mapped_column(primary_key=True, autoincrement=False)


ROLLUPS = (HourRollup, DayRollup, UnitRollup, ItemDayRollup, ItemSpanRollup)
"""In the order in which they are written."""
