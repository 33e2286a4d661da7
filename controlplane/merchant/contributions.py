"""What one sale or refund adds to each rollup. Pure.

`controlplane.merchant.rebuild` says the same once more, in SQL over all rows; a test and
`venue-control sandbox rebuild` hold the two together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from controlplane.figures.local_time import HOURS
from controlplane.figures.money import milli
from controlplane.figures.sums import DaySums, HourSums, ItemSums, Sums, UnitSums, plus
from controlplane.merchant.sales import LineRow, SaleMoney, SoldArticle

SPAN_DAYS: Final = 8
NO_SNAPSHOT: Final = 0
NO_METHOD: Final = 0
NO_UNIT: Final = ""

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where and when in local hours, in which currency, and how it was paid."""

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
        return (*self.place_of_day, self.payment_type, self.payment_method or NO_METHOD)

    @property
    def place_of_day(self) -> Key:
        return (self.location, self.hour // HOURS, self.currency)


@dataclass(slots=True)
class Contributions:
    """Sums by the primary keys of their tables."""

    hours: dict[Key, HourSums] = field(default_factory=dict)
    days: dict[Key, DaySums] = field(default_factory=dict)
    units: dict[Key, UnitSums] = field(default_factory=dict)
    item_days: dict[Key, ItemSums] = field(default_factory=dict)
    item_spans: dict[Key, ItemSums] = field(default_factory=dict)

    def add_item(self, place: Place, snapshot: int, sums: ItemSums) -> None:
        location, day, currency = place.place_of_day
        _add(self.item_days, (location, day, currency, snapshot, place.payment_type), sums)
        _add(self.item_spans, (location, day // SPAN_DAYS, currency, snapshot), sums)


@dataclass(frozen=True, slots=True)
class SaleFacts:
    """A completed sale as far as rollups go. ``lines`` None: it has none."""

    money: SaleMoney
    municipality_fee: int
    tip: int
    lines: Sequence[LineRow] | None


@dataclass(frozen=True, slots=True)
class RefundFacts:
    """``lines`` are of snapshot, quantity in thousandths, and amount."""

    goods: int
    fee: int
    tip: int
    tax: int | None
    has_components: bool
    lines: Sequence[tuple[int, int, int]]


def of_sale(place: Place, sale: SaleFacts, articles: Mapping[int, SoldArticle]) -> Contributions:
    """``articles`` are by snapshot."""
    found, money = Contributions(), sale.money
    discount = money.gross - money.total
    found.hours[place.hour_key] = HourSums(money.gross, discount, 1)
    is_missing = sale.lines is None
    found.days[place.day_key] = DaySums(
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
    if sale.lines is None:
        found.add_item(place, NO_SNAPSHOT, ItemSums(gross=money.gross, discount=discount))
    for line in sale.lines or ():
        article = articles[line.snapshot]
        quantity = milli(line.quantity, article.exponent)
        unit_key = (*place.place_of_day, place.payment_type, article.unit or NO_UNIT)
        _add(found.units, unit_key, UnitSums(quantity, 1))
        sums = ItemSums(quantity, 1, line.gross, line.discount + line.share)
        found.add_item(place, line.snapshot, sums)
    return found


def of_unresolved(place: Place, amount: int) -> Contributions:
    """An order whose state nobody could resolve is counted, and in no figure."""
    days = {place.day_key: DaySums(unresolved_count=1, unresolved_amount=amount)}
    return Contributions(days=days)


def of_refund(sold: Place, given_back: Place | None, refund: RefundFacts) -> Contributions:
    """``sold`` is where the sale stands; ``given_back`` None: nobody wrote down when."""
    found = Contributions()
    found.hours[sold.hour_key] = HourSums(undone=refund.goods)
    found.days[sold.day_key] = DaySums(undone=refund.goods)
    if given_back is None:
        amount = refund.goods + refund.fee + refund.tip
        _add(found.days, sold.day_key, DaySums(undated_count=1, undated_amount=amount))
        return found
    _add(found.hours, given_back.hour_key, HourSums(refund=refund.goods, refund_count=1))
    sums = DaySums(
        refund=refund.goods,
        refund_count=1,
        refunded_fee=refund.fee,
        refunded_tip=refund.tip,
        refund_tax=refund.tax or 0,
        refund_unknown_tax=int(refund.tax is None),
        refund_unknown_components=int(not refund.has_components),
    )
    _add(found.days, given_back.day_key, sums)
    for snapshot, quantity, amount in refund.lines or ((NO_SNAPSHOT, 0, refund.goods),):
        found.add_item(given_back, snapshot, ItemSums(refunded_milli=quantity, refund=amount))
    return found


def rows_of(sums: Mapping[Key, tuple[int, ...]]) -> list[Key]:
    """Return key and sums in one row each, in an order that all writers share: two that took
    rows in different orders would wait for each other."""
    return [(*key, *part) for key, part in sorted(sums.items(), key=lambda entry: entry[0])]


def _add(to: dict[Key, Sums], key: Key, sums: Sums) -> None:
    known = to.get(key)
    to[key] = sums if known is None else plus(known, sums)
