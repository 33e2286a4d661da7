"""Computes the sums that a sale or a refund adds to each rollup. All functions are pure.

`controlplane.merchant.rebuild` computes the same sums for all sales and refunds with SQL. A test
and `venue-control sandbox rebuild` compare the results of both modules.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from controlplane.figures.local_time import DAY_HOURS
from controlplane.figures.money import milli
from controlplane.figures.sums import DaySums, HourSums, ItemSums, Sums, UnitSums, add_part
from controlplane.merchant.sales import LineRow, NewRefund, NewSale, SaleMoney
from controlplane.storage.merchant.rollup_tables import (
    ROLLUPS,
    DayRollup,
    HourRollup,
    ItemDayRollup,
    ItemSpanRollup,
    UnitRollup,
)

SPAN_DAYS: Final = 8
"""Number of days that one row of `ItemSpanRollup` covers."""
NO_SNAPSHOT: Final = 0
NO_METHOD: Final = 0
NO_UNIT: Final = ""
"""These values replace a missing snapshot, method or unit in the primary key of a rollup."""

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RollupKey:
    """The properties of a sale or refund by which rollups are grouped.

    ``hour`` is a local hour: 24 × the number of days since 1970-01-01, plus the hour of the day.
    """

    location: int
    hour: int
    currency: str
    payment_type: str
    payment_method: int | None

    @property
    def hour_key(self) -> Key:
        return (self.location, self.hour, self.currency)

    @property
    def day_key(self) -> Key:
        return (*self.location_day, self.payment_type, self.payment_method or NO_METHOD)

    @property
    def location_day(self) -> Key:
        return (self.location, self.hour // DAY_HOURS, self.currency)


class Contributions:
    """The sums to add to each rollup, by the primary key of the row."""

    def __init__(self) -> None:
        self._sums: dict[Any, dict[Key, Any]] = {rollup: {} for rollup in ROLLUPS}

    def add(self, rollup: Any, key: Key, sums: Sums) -> None:
        add_part(self._sums[rollup], key, sums)

    def add_item(self, rollup_key: RollupKey, snapshot: int, sums: ItemSums) -> None:
        location, day, currency = rollup_key.location_day
        self.add(ItemDayRollup, (location, day, currency, snapshot, rollup_key.payment_type), sums)
        self.add(ItemSpanRollup, (location, day // SPAN_DAYS, currency, snapshot), sums)

    def rows(self) -> Iterator[tuple[Any, list[Key]]]:
        """Yield each rollup with its rows. A row has the values of the key and then the sums.

        All writers use the same order of rows, so that two writers do not deadlock.
        """
        for rollup, sums in self._sums.items():
            yield rollup, [(*key, *sums[key]) for key in sorted(sums)]


def of_sale(
    rollup_key: RollupKey, sale: NewSale, money: SaleMoney, rows: Sequence[LineRow]
) -> Contributions:
    """Return the sums that a completed sale adds. ``rows`` are the rows of its lines."""
    contributions = Contributions()
    discount = money.gross - money.total
    hour_sums = HourSums(gross=money.gross, discount=discount, sale_count=1)
    contributions.add(HourRollup, rollup_key.hour_key, hour_sums)
    is_missing = sale.lines is None
    sums = DaySums(
        gross=money.gross,
        discount=discount,
        sale_count=1,
        pieces=money.pieces,
        municipality_fee=sale.municipality_fee,
        tip=sale.tip,
        sale_tax=money.tax,
        unknown_tax_lines=money.unknown_tax_lines,
        missing_count=int(is_missing),
        missing_amount=money.total if is_missing else 0,
    )
    contributions.add(DayRollup, rollup_key.day_key, sums)
    if is_missing:
        item_sums = ItemSums(gross=money.gross, discount=discount)
        contributions.add_item(rollup_key, NO_SNAPSHOT, item_sums)
    for line, row in zip(sale.lines or (), rows, strict=True):
        quantity = milli(line.quantity, line.article.exponent)
        unit_key = (*rollup_key.location_day, rollup_key.payment_type, line.article.unit or NO_UNIT)
        contributions.add(UnitRollup, unit_key, UnitSums(quantity, line_count=1))
        discount = row.discount + row.share
        item_sums = ItemSums(quantity, line_count=1, gross=row.gross, discount=discount)
        contributions.add_item(rollup_key, row.snapshot, item_sums)
    return contributions


def of_unresolved_order(rollup_key: RollupKey, amount: int) -> Contributions:
    """Return the sums that an imported order of unknown status adds.

    They count the order as missing data. Its amount is not part of the sales.
    """
    contributions = Contributions()
    sums = DaySums(unresolved_count=1, unresolved_amount=amount)
    contributions.add(DayRollup, rollup_key.day_key, sums)
    return contributions


def of_refund(
    sale_key: RollupKey,
    refund_key: RollupKey | None,
    refund: NewRefund,
    tax: int | None,
    lines: Sequence[tuple[int, int, int]],
) -> Contributions:
    """Return the sums that a refund adds.

    Args:
        sale_key: The key of the refunded sale.
        refund_key: The key of the refund. None means that the time of the refund is unknown.
        tax: The refunded tax. None means that it is unknown.
        lines: The snapshot, the quantity in thousandths and the amount of each refunded line.
    """
    contributions = Contributions()
    contributions.add(HourRollup, sale_key.hour_key, HourSums(undone=refund.goods))
    contributions.add(DayRollup, sale_key.day_key, DaySums(undone=refund.goods))
    if refund_key is None:
        amount = refund.goods + refund.fee + refund.tip
        day_sums = DaySums(undated_count=1, undated_amount=amount)
        contributions.add(DayRollup, sale_key.day_key, day_sums)
        return contributions
    hour_sums = HourSums(refund=refund.goods, refund_count=1)
    contributions.add(HourRollup, refund_key.hour_key, hour_sums)
    day_sums = DaySums(
        refund=refund.goods,
        refund_count=1,
        refunded_fee=refund.fee,
        refunded_tip=refund.tip,
        refund_tax=tax or 0,
        refund_unknown_tax=int(tax is None),
        refund_unknown_components=int(not refund.has_components),
    )
    contributions.add(DayRollup, refund_key.day_key, day_sums)
    for snapshot, quantity, amount in lines or ((NO_SNAPSHOT, 0, refund.goods),):
        item_sums = ItemSums(refunded_milli=quantity, refund=amount)
        contributions.add_item(refund_key, snapshot, item_sums)
    return contributions
