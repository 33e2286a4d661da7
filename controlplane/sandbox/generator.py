"""Generates the sales and refunds of a venue, day by day."""

import random
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Final

from controlplane.figures.local_time import date_of, intervals
from controlplane.figures.money import divide, price_of
from controlplane.merchant.sales import (
    COMPLETED,
    UNKNOWN,
    NewLine,
    NewPayment,
    NewRefund,
    NewRefundLine,
    NewSale,
    line_rows,
)
from controlplane.sandbox.catalog import MUNICIPALITY_MILLI, Catalog, Offer
from controlplane.sandbox.locations import Method, Venue
from controlplane.sandbox.plan import Plan, id_at

HOUR_WEIGHTS: Final = (
    0, 0, 0, 0, 0, 0, 1, 4, 8, 9, 8, 9, 14, 15, 10, 7, 6, 7, 9, 10, 9, 6, 3, 0, 0,
)  # fmt: skip
"""Relative number of sales in each hour of a day. The 25th hour exists only on days of 25 hours."""
AWKWARD_HOUR_WEIGHTS: Final = (
    1, 1, 1, 1, 0, 0, 1, 4, 8, 9, 8, 9, 14, 15, 10, 7, 6, 7, 9, 10, 9, 6, 3, 2, 1,
)  # fmt: skip
"""`HOUR_WEIGHTS` of an awkward sandbox (`Plan.is_awkward`), which also has sales at night."""
WEEKDAY_PERCENTS: Final = (90, 85, 90, 100, 125, 130, 80)
"""Sales on each day of the week in percent of the average, Monday first."""
FOREIGN: Final = {"AED": "EUR", "EUR": "AED"}
"""Maps the currency of a venue to the currency of its sales in a foreign currency."""
LINE_COUNTS: Final = (30, 30, 20, 12, 8)
"""Percentage of the sales that have one line, two lines and so on, up to five."""
PORTIONS: Final = (250, 375, 500, 750, 1000, 1250)
"""Quantities of articles sold by weight or volume, in thousandths of the unit."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """A sale with its refunds.

    ``sale`` of each refund is 0, because the sale has no position until it is stored.
    """

    sale: NewSale
    refunds: tuple[NewRefund, ...]


class DayGenerator:
    """Generates the transactions of a venue on a given day, independently of all other days."""

    def __init__(self, plan: Plan, catalog: Catalog, methods: Sequence[Method]) -> None:
        self.plan = plan
        self._catalog = catalog
        self._methods = methods
        hour_weights = AWKWARD_HOUR_WEIGHTS if plan.is_awkward else HOUR_WEIGHTS
        self._hour_weights = tuple(accumulate(hour_weights))
        self._offer_weights = tuple(accumulate(offer.weight for offer in catalog.offers))

    def transactions(self, venue: Venue, day: int) -> Iterator[Transaction]:
        """Yield the day's transactions in chronological order."""
        rng = self.plan.random_for("day", venue.number, day)
        timestamps = sorted(self._draw_timestamps(rng, venue, day))
        for number, timestamp in enumerate(timestamps, 1):
            yield self._transaction(rng, venue, day, number, timestamp)

    def _transaction(
        self, rng: random.Random, venue: Venue, day: int, number: int, timestamp: datetime
    ) -> Transaction:
        chance = rng.random()
        is_awkward = self.plan.is_awkward
        has_no_lines = is_awkward and chance < 0.003
        is_unresolved = is_awkward and 0.003 <= chance < 0.005
        is_foreign = is_awkward and 0.005 <= chance < 0.01
        lines = [self._line(rng) for _ in range(rng.choices(range(1, 6), LINE_COUNTS)[0])]
        line_total = sum(
            price_of(line.unit_price, line.quantity, line.article.exponent) - line.discount
            for line in lines
        )
        discount = line_total // 10 if rng.random() < 0.05 else 0
        total = line_total - discount
        fee = divide(total * MUNICIPALITY_MILLI, 100_000) if venue.number % 3 == 0 else 0
        tip = rng.randrange(1, 20) * 50 if rng.random() < 0.1 else 0
        sale = NewSale(
            id=id_at(timestamp, rng),
            organization_id=self.plan.organization_id,
            location=venue.position,
            point_of_sale=rng.choice(venue.tills),
            employee=self._employee(rng, venue),
            number=f"{venue.number + 1:04}-{date_of(day):%y%m%d}-{number:05}",
            ticket_number=str(number),
            status=UNKNOWN if is_unresolved else COMPLETED,
            initiated_at=timestamp,
            currency=FOREIGN[venue.currency] if is_foreign else venue.currency,
            lines=None if has_no_lines or is_unresolved else lines,
            payments=self._payments(rng, total + fee + tip),
            total=total if has_no_lines or is_unresolved else None,
            discount=discount,
            municipality_fee=fee,
            tip=tip,
            comment="no onions" if rng.random() < 0.01 else None,
            external_data={"id": f"order-{number:05}"} if rng.random() < 0.02 else None,
        )
        if is_unresolved or total == 0 or rng.random() >= 0.03:
            return Transaction(sale, ())
        return Transaction(sale, (self._refund(rng, sale, total),))

    def _employee(self, rng: random.Random, venue: Venue) -> int | None:
        is_recorded = rng.random() > 0.03 or not self.plan.is_awkward
        return rng.choice(venue.employees) if is_recorded else None

    def _line(self, rng: random.Random) -> NewLine:
        if rng.random() < 0.01:
            offer = rng.choice(self._catalog.irregular)
        else:
            offer = self._catalog.offers[
                bisect(self._offer_weights, rng.random() * self._offer_weights[-1])
            ]
        quantity = _quantity(rng, offer)
        discount = 0
        if rng.random() < 0.08:
            cost = price_of(offer.price, quantity, offer.article.exponent)
            discount = divide(cost * rng.choice((5, 10, 15, 20)), 100)
        return NewLine(offer.article, quantity, offer.price, discount)

    def _payments(self, rng: random.Random, due: int) -> tuple[NewPayment, ...]:
        first, second = rng.choices(self._methods, (35, 30, 18, 8, 6, 3), k=2)
        if rng.random() < 0.005 and self.plan.is_awkward:
            return (NewPayment(None, "other", due),)
        if due > 1 and rng.random() < 0.05:
            part = rng.randrange(1, due)
            return (
                NewPayment(first.position, first.type, part),
                NewPayment(second.position, second.type, due - part),
            )
        return (NewPayment(first.position, first.type, due),)

    def _refund(self, rng: random.Random, sale: NewSale, total: int) -> NewRefund:
        longest_s = (
            (600, 7_200, 86_400, 5 * 86_400, 12 * 86_400) if self.plan.is_awkward else (600,)
        )
        longest_delay = timedelta(seconds=rng.choice(longest_s))
        at = sale.initiated_at + longest_delay * rng.random()
        method = rng.choice(self._methods)
        payment = NewPayment(method.position, method.type, 0)
        if rng.random() < 0.8:
            payment = sale.payments[0]
        chance = rng.random()
        is_undated = self.plan.is_awkward and chance < 0.1
        is_unknown = self.plan.is_awkward and 0.1 <= chance < 0.2
        lines: list[NewRefundLine] = []
        fee = tip = 0
        if is_unknown or sale.lines is None:
            goods = rng.randrange(1, total + 1)
        else:
            lines = _refund_lines(rng, sale)
            goods = sum(line.amount for line in lines)
            if goods == total:
                fee, tip = sale.municipality_fee, sale.tip
        return NewRefund(
            id=id_at(at, rng),
            sale=0,
            refunded_at=None if is_undated else at,
            goods=goods,
            fee=fee,
            tip=tip,
            has_components=not is_unknown,
            payment=payment,
            employee=sale.employee,
            lines=tuple(lines),
        )

    def _draw_timestamps(self, rng: random.Random, venue: Venue, day: int) -> Iterator[datetime]:
        spans = intervals(venue.clock.zone, day, day)
        weekday_percent = WEEKDAY_PERCENTS[(day + 3) % 7]  # 1970-01-01, day 0, was a Thursday
        random_percent = rng.randrange(70, 131)
        count = divide(self.plan.sales_per_day * weekday_percent * random_percent, 10_000)
        length_us = sum((end - start) // timedelta(microseconds=1) for start, end in spans)
        if not length_us:
            return
        for _ in range(count):
            hour = bisect(self._hour_weights, rng.random() * self._hour_weights[-1])
            offset_us = (hour * 3_600_000_000 + rng.randrange(3_600_000_000)) % length_us
            for start, end in spans:
                if start + timedelta(microseconds=offset_us) < end:
                    yield start + timedelta(microseconds=offset_us)
                    break
                offset_us -= (end - start) // timedelta(microseconds=1)


def _quantity(rng: random.Random, offer: Offer) -> int:
    exponent = offer.article.exponent
    if exponent == 0:
        return rng.choices((1, 2, 3), (80, 15, 5))[0]
    return rng.choice(PORTIONS) // int(10 ** (3 - exponent))


def _refund_lines(rng: random.Random, sale: NewSale) -> list[NewRefundLine]:
    """Return refunds of all lines or of one line, each with the amount that was paid for it."""
    rows = line_rows(sale)
    chosen_rows = rows if rng.random() < 0.4 else [rng.choice(rows)]
    return [NewRefundLine(row.number, row.quantity, row.total - row.share) for row in chosen_rows]
