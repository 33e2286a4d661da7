"""Computes the pulse of a location: its net today, and its activity by weekday and hour.

The net of today until now is compared with the net of yesterday until the same local time. The best
of the last four days with the same weekday is returned as well.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from controlplane.figures.local_time import DAY_HOURS, date_of
from controlplane.figures.money import percent
from controlplane.figures.records import Activity, Point, PulseCurrency, VenuePulse

WEEK: Final = 7
ACTIVITY_DAYS: Final = 28
"""Activity is counted for this number of days before today: four of each weekday."""


@dataclass(frozen=True, slots=True)
class PulseFacts:
    """The data of a location for a pulse.

    Attributes:
        currency: the usual currency of the location.
        hour: the current hour in local time, counted from 1970-01-01: days × 24 plus the hour of
            the day. Days are counted from 1970-01-01 too.
        nets, orders: the net and the number of orders, by currency and local hour. The values of
            the current hour are not used.
        net_this_hour: net of this hour until now, by currency.
        net_same_hour_yesterday: net of the same hour of yesterday until the same local time, by
            currency.
        incomplete: pairs of a currency and a day with incomplete data.
        first_day: the day of the first sale or refund, or None if there is none.
    """

    location_id: str
    currency: str
    hour: int
    nets: Mapping[tuple[str, int], int]
    orders: Mapping[tuple[str, int], int]
    net_this_hour: Mapping[str, int]
    net_same_hour_yesterday: Mapping[str, int]
    incomplete: Collection[tuple[str, int]]
    first_day: int | None

    @property
    def today(self) -> int:
        return self.hour // DAY_HOURS


def pulse(facts: PulseFacts) -> VenuePulse:
    recent = {currency for currency, hour in facts.nets if hour // DAY_HOURS >= facts.today - 1}
    currencies = {facts.currency, *recent, *facts.net_this_hour, *facts.net_same_hour_yesterday}
    first_counted_day = facts.today - ACTIVITY_DAYS
    return VenuePulse(
        location_id=facts.location_id,
        activity_complete=facts.first_day is not None and facts.first_day <= first_counted_day,
        currencies=tuple(_currency(currency, facts) for currency in sorted(currencies)),
        activity=activity(facts),
    )


def activity(facts: PulseFacts) -> tuple[Activity, ...]:
    """Return the number of orders by weekday and hour. Hours without orders are left out."""
    counts: defaultdict[tuple[int, int], int] = defaultdict(int)
    for (_currency, hour), orders in facts.orders.items():
        day = hour // DAY_HOURS
        if facts.today - ACTIVITY_DAYS <= day < facts.today:
            counts[date_of(day).isoweekday(), hour % DAY_HOURS] += orders
    return tuple(
        Activity(weekday=weekday, hour=hour, order_count=orders)
        for (weekday, hour), orders in sorted(counts.items())
        if orders
    )


def _currency(currency: str, facts: PulseFacts) -> PulseCurrency:
    hour = facts.hour % DAY_HOURS
    whole_hours = _hourly_nets(currency, facts.today, facts)[:hour]
    points = [*whole_hours, facts.net_this_hour.get(currency, 0)]
    yesterday = sum(_hourly_nets(currency, facts.today - 1, facts)[:hour])
    yesterday += facts.net_same_hour_yesterday.get(currency, 0)
    complete = (currency, facts.today) not in facts.incomplete
    return PulseCurrency(
        currency=currency,
        today_cents=sum(points),
        yesterday_cents=yesterday,
        complete=complete,
        comparison_complete=complete and (currency, facts.today - 1) not in facts.incomplete,
        delta_percent=percent(sum(points) - yesterday, yesterday),
        points=tuple(Point(cents=cents) for cents in points),
        peak_points=tuple(Point(cents=cents) for cents in _peak(currency, facts)),
    )


def _peak(currency: str, facts: PulseFacts) -> list[int]:
    """Return the net of each hour on the best of the last four days with today's weekday.

    Empty if there were no sales and refunds on these days.
    """
    days = [
        day
        for day in range(facts.today - WEEK, facts.today - ACTIVITY_DAYS - 1, -WEEK)
        if any((currency, day * DAY_HOURS + hour) in facts.nets for hour in range(DAY_HOURS))
    ]
    nets_of_days = [_hourly_nets(currency, day, facts) for day in days]
    return max(nets_of_days, key=sum, default=[])


def _hourly_nets(currency: str, day: int, facts: PulseFacts) -> list[int]:
    return [facts.nets.get((currency, day * DAY_HOURS + hour), 0) for hour in range(DAY_HOURS)]
