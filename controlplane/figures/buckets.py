"""Computes buckets from the sums of each local hour, and trading days from the sums of each day.

A bucket has the figures of one local hour of a location. ``netCents`` subtracts a refund in the
hour of the refund. ``tradingRevenueCents`` subtracts it in the hour of the refunded sale. An hour
without sales and refunds has no bucket.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from controlplane.figures.financial import QueryLocation
from controlplane.figures.local_time import DAY_HOURS, date_of
from controlplane.figures.records import Bucket, TradingDay
from controlplane.figures.sums import HourSums

HourRow = Sequence[Any]
"""Position of the location, local hour, currency, and the fields of `HourSums`."""
DayRow = Sequence[Any]
"""Local day, currency, and the fields of `HourSums`: sums over the sales of the day."""


def buckets(locations: Iterable[QueryLocation], rows: Iterable[HourRow]) -> dict[str, list[Bucket]]:
    """Return the buckets of each currency, in the order of ``rows``."""
    ids = {location.position: location.location_id for location in locations}
    dates: dict[int, str] = {}
    by_currency: defaultdict[str, list[Bucket]] = defaultdict(list)
    for location, hour, currency, gross, discount, sale_count, refund, refund_count, undone in rows:
        day = hour // DAY_HOURS
        if (local_date := dates.get(day)) is None:
            local_date = dates[day] = date_of(day).isoformat()
        sale = gross - discount
        by_currency[currency].append(
            {
                "locationId": ids[location],
                "localDate": local_date,
                "localHour": hour - day * DAY_HOURS,
                "grossCents": gross,
                "discountCents": discount,
                "refundCents": refund,
                "netCents": sale - refund,
                "tradingRevenueCents": sale - undone,
                "saleCount": sale_count,
                "refundCount": refund_count,
            }
        )
    return by_currency


def trading(rows: Iterable[DayRow]) -> dict[str, list[TradingDay]]:
    """Return the days with sales, by currency, in the order of ``rows``."""
    days: defaultdict[str, list[TradingDay]] = defaultdict(list)
    for day, currency, *columns in rows:
        sums = HourSums(*columns)
        if sums.sale_count:
            days[currency].append(
                TradingDay(
                    local_date=date_of(day).isoformat(),
                    trading_revenue_cents=sums.gross - sums.discount - sums.undone,
                    sale_count=sums.sale_count,
                )
            )
    return days
