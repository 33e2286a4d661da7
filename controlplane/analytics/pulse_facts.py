"""Reads the data for the pulse of a location (`controlplane.figures.pulse`).

Whole hours are read from the rollups. The current hour, and the same hour of yesterday, are
computed from sales and refunds.
"""

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime

from sqlalchemy import func, select

from controlplane.analytics.reading import DayRange, Reader
from controlplane.figures.financial import QueryLocation, coverage
from controlplane.figures.local_time import DAY_HOURS, hour_of, intervals
from controlplane.figures.pulse import ACTIVITY_DAYS, PulseFacts
from controlplane.figures.sums import HourSums
from controlplane.figures.windows import Days
from controlplane.merchant.sales import COMPLETED
from controlplane.operation.context import RequestContext
from controlplane.storage.merchant.rollup_tables import HourRollup
from controlplane.storage.merchant.sales_tables import Refund, Sale


def pulse_facts(context: RequestContext, location: QueryLocation) -> PulseFacts:
    hour = hour_of(context.now, location.clock.zone)
    today = hour // DAY_HOURS
    reader = Reader(context.session, context.caller.organization_id)
    nets, orders = {}, {}
    day_range = DayRange(Days(today - ACTIVITY_DAYS, today), (location.position,))
    for _location, local_hour, currency, *columns in reader.hours([day_range]):
        sums = HourSums(*columns)
        nets[currency, local_hour] = sums.gross - sums.discount - sums.refund
        orders[currency, local_hour] = sums.sale_count
    incomplete = set()
    for day in (today - 1, today):
        ledger = reader.ledger([DayRange(Days(day, day), (location.position,))])
        for (_location, currency), movements in ledger.items():
            day_coverage = coverage(movements.sums, 0)
            if not (day_coverage.sales_complete and day_coverage.refunds_complete):
                incomplete.add((currency, day))
    first_hour = context.session.execute(
        select(func.min(HourRollup.hour)).where(HourRollup.location == location.position)
    ).scalar_one()
    clock_time = context.now.astimezone(location.clock.zone).time()
    return PulseFacts(
        location_id=location.location_id,
        currency=location.currency,
        hour=hour,
        nets=nets,
        orders=orders,
        net_this_hour=_net(context, location, hour, lambda timestamp: timestamp <= context.now),
        net_same_hour_yesterday=_net(
            context,
            location,
            hour - DAY_HOURS,
            lambda timestamp: timestamp.astimezone(location.clock.zone).time() <= clock_time,
        ),
        incomplete=incomplete,
        first_day=None if first_hour is None else first_hour // DAY_HOURS,
    )


def _net(
    context: RequestContext,
    location: QueryLocation,
    hour: int,
    is_counted: Callable[[datetime], bool],
) -> dict[str, int]:
    """Return the net of a local hour, by currency.

    Args:
        is_counted: takes the time of a sale or refund, and returns whether the net includes it.
    """
    nets: defaultdict[str, int] = defaultdict(int)
    day = hour // DAY_HOURS
    for start, end in intervals(location.clock.zone, day, day):
        sales = select(Sale.currency, Sale.initiated_at, Sale.total).where(
            Sale.location == location.position,
            Sale.initiated_at >= start,
            Sale.initiated_at < end,
            Sale.local_hour == hour,
            Sale.status == COMPLETED,
        )
        refunds = select(Refund.currency, Refund.refunded_at, -Refund.goods).where(
            Refund.location == location.position,
            Refund.refunded_at >= start,
            Refund.refunded_at < end,
            Refund.local_hour == hour,
        )
        for query in (sales, refunds):
            for currency, timestamp, amount in context.session.execute(query):
                if timestamp is not None and is_counted(timestamp):
                    nets[currency] += amount
    return dict(nets)
