"""A day of a venue: sales and what is given back of them, by dice of the day's own."""

import random
from bisect import bisect
from collections.abc import Iterator
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
from controlplane.sandbox.places import Venue, Way
from controlplane.sandbox.plan import Plan, id_at

HOURS: Final = (1, 1, 1, 1, 0, 0, 1, 4, 8, 9, 8, 9, 14, 15, 10, 7, 6, 7, 9, 10, 9, 6, 3, 2, 1)
"""How busy each hour of a day is, from its begin; the last one is had by days of 25 hours."""
BUSY: Final = tuple(accumulate(HOURS))
WEEKDAYS: Final = (90, 85, 90, 100, 125, 130, 80)
FOREIGN: Final = {"AED": "EUR", "EUR": "AED"}
GROUP: Final = (30, 30, 20, 12, 8)
PORTIONS: Final = (250, 375, 500, 750, 1000, 1250)
"""Thousandths, of what is weighed."""


@dataclass(frozen=True, slots=True)
class Deal:
    """A sale with its refunds, whose ``sale`` is 0 until it is known."""

    sale: NewSale
    refunds: tuple[NewRefund, ...]


@dataclass(frozen=True, slots=True)
class Trade:
    """``offers`` are dealt by weight; ``fees`` tells which venues take the municipality's."""

    plan: Plan
    catalog: Catalog
    ways: tuple[Way, ...]
    weights: tuple[int, ...]

    def day(self, venue: Venue, day: int) -> Iterator[Deal]:
        """Give the day's deals in the order of their moments."""
        dice = self.plan.dice("day", venue.number, day)
        moments = sorted(_moments(dice, self.plan.sales_per_day, venue, day))
        for number, moment in enumerate(moments, 1):
            yield self._deal(dice, venue, day, number, moment)

    def _deal(
        self, dice: random.Random, venue: Venue, day: int, number: int, moment: datetime
    ) -> Deal:
        chance = dice.random()
        is_missing = chance < 0.003
        is_unresolved = 0.003 <= chance < 0.005
        is_foreign = 0.005 <= chance < 0.01
        lines = [self._line(dice) for _ in range(dice.choices(range(1, 6), GROUP)[0])]
        whole = sum(
            price_of(line.unit_price, line.quantity, line.article.exponent) - line.discount
            for line in lines
        )
        discount = whole // 10 if dice.random() < 0.05 else 0
        total = whole - discount
        fee = divide(total * MUNICIPALITY_MILLI, 100_000) if venue.number % 3 == 0 else 0
        tip = dice.randrange(1, 20) * 50 if dice.random() < 0.1 else 0
        sale = NewSale(
            id=id_at(moment, dice),
            organization_id=self.plan.organization_id,
            location=venue.position,
            point_of_sale=dice.choice(venue.terminals),
            employee=dice.choice(venue.employees) if dice.random() > 0.03 else None,
            number=f"{venue.number + 1:04}-{date_of(day):%y%m%d}-{number:05}",
            ticket_number=str(number),
            status=UNKNOWN if is_unresolved else COMPLETED,
            initiated_at=moment,
            currency=FOREIGN[venue.currency] if is_foreign else venue.currency,
            lines=None if is_missing or is_unresolved else lines,
            payments=self._payments(dice, total + fee + tip),
            total=total if is_missing or is_unresolved else None,
            discount=discount,
            municipality_fee=fee,
            tip=tip,
            comment="no onions" if dice.random() < 0.01 else None,
            external_data={"id": f"order-{number:05}"} if dice.random() < 0.02 else None,
        )
        if is_unresolved or total == 0 or dice.random() >= 0.03:
            return Deal(sale, ())
        return Deal(sale, tuple(self._refunds(dice, sale, total)))

    def _line(self, dice: random.Random) -> NewLine:
        if dice.random() < 0.01:
            offer = dice.choice(self.catalog.oddities)
        else:
            offer = self.catalog.offers[bisect(self.weights, dice.random() * self.weights[-1])]
        quantity = _quantity(dice, offer)
        discount = 0
        if dice.random() < 0.08:
            cost = price_of(offer.price, quantity, offer.article.exponent)
            discount = divide(cost * dice.choice((5, 10, 15, 20)), 100)
        return NewLine(offer.article, quantity, offer.price, discount)

    def _payments(self, dice: random.Random, due: int) -> tuple[NewPayment, ...]:
        first, second = dice.choices(self.ways, (35, 30, 18, 8, 6, 3), k=2)
        if dice.random() < 0.005:
            return (NewPayment(None, "other", due),)
        if due > 1 and dice.random() < 0.05:
            part = dice.randrange(1, due)
            return (
                NewPayment(first.position, first.type, part),
                NewPayment(second.position, second.type, due - part),
            )
        return (NewPayment(first.position, first.type, due),)

    def _refunds(self, dice: random.Random, sale: NewSale, total: int) -> Iterator[NewRefund]:
        later = timedelta(seconds=dice.choice((600, 7_200, 86_400, 5 * 86_400, 12 * 86_400)))
        at = sale.initiated_at + later * dice.random()
        way = dice.choice(self.ways)
        payment = sale.payments[0] if dice.random() < 0.8 else NewPayment(
            way.position, way.type, 0)  # fmt: skip
        chance = dice.random()
        is_undated, is_unknown = chance < 0.1, 0.1 <= chance < 0.2
        lines: list[NewRefundLine] = []
        goods = fee = tip = 0
        if is_unknown or sale.lines is None:
            goods = dice.randrange(1, total + 1)
        else:
            lines = _given_back(dice, sale)
            goods = sum(line.amount for line in lines)
            is_all = goods == total
            fee, tip = (sale.municipality_fee, sale.tip) if is_all else (0, 0)
        yield NewRefund(
            id=id_at(at, dice),
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


def trade(plan: Plan, catalog: Catalog, ways: list[Way]) -> Trade:
    weights = tuple(accumulate(offer.weight for offer in catalog.offers))
    return Trade(plan, catalog, tuple(ways), weights)


def _moments(dice: random.Random, sales: int, venue: Venue, day: int) -> Iterator[datetime]:
    pieces = intervals(venue.clock.zone, day, day)
    count = divide(sales * WEEKDAYS[(day + 3) % 7] * dice.randrange(70, 131), 10_000)
    length_us = sum((end - start) // timedelta(microseconds=1) for start, end in pieces)
    if not length_us:
        return
    for _ in range(count):
        hour = bisect(BUSY, dice.random() * BUSY[-1])
        offset_us = (hour * 3_600_000_000 + dice.randrange(3_600_000_000)) % length_us
        for start, end in pieces:
            if start + timedelta(microseconds=offset_us) < end:
                yield start + timedelta(microseconds=offset_us)
                break
            offset_us -= (end - start) // timedelta(microseconds=1)


def _quantity(dice: random.Random, offer: Offer) -> int:
    exponent = offer.article.exponent
    if exponent == 0:
        return dice.choices((1, 2, 3), (80, 15, 5))[0]
    return dice.choice(PORTIONS) // int(10 ** (3 - exponent))


def _given_back(dice: random.Random, sale: NewSale) -> list[NewRefundLine]:
    """Return all lines, or one of them; at what was paid for them."""
    rows = line_rows(sale)
    chosen = rows if dice.random() < 0.4 else [dice.choice(rows)]
    return [NewRefundLine(row.number, row.quantity, row.total - row.share) for row in chosen]
