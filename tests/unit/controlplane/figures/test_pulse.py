"""Tests that the reply of venueFinancialPulse equals a recount of all rows of a merchant."""

import json
from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from sqlalchemy.orm import Session

from agent.wire.codec import encode, parse_json
from controlplane.analytics import routes
from controlplane.analytics.registry import OPERATIONS
from controlplane.operation.context import RequestContext
from controlplane.settings import Settings
from controlplane.storage.database import Database
from tests.unit.controlplane.figures.merchants import ORGANIZATION, Merchant, merchants, write
from tests.unit.controlplane.figures.recount import Json, Recount, Venue, share_percent
from tests.unit.controlplane.figures.test_recount import (
    CALLER,
    MERCHANTS,
    PHASES,
    Undo,
    empty_database,
)

__all__ = ["empty_database"]


def expected_pulse(  # noqa: C901, PLR0912 - one function is easier to check
    recount: Recount, venue: Venue, now: datetime
) -> Json:
    """Return the pulse of a location, as docs/figures.md defines it."""
    local = now.astimezone(venue.zone)
    today = local.date()
    movements: list[tuple[str, datetime, int, bool]] = []
    incomplete = set()
    for sale in recount.sales:
        if sale.location != venue.position:
            continue
        sold_on = sale.at.astimezone(venue.zone).date()
        if sale.status != "completed":
            incomplete.add((sale.currency, sold_on))
            continue
        movements.append((sale.currency, sale.at, sale.total, True))
        if sale.lines is None or any(refund.at is None for refund in sale.refunds):
            incomplete.add((sale.currency, sold_on))
        for refund in sale.refunds:
            if refund.at is not None:
                movements.append((sale.currency, refund.at, -refund.goods, False))
                if not refund.has_known_components:
                    incomplete.add((sale.currency, refund.at.astimezone(venue.zone).date()))
    hours: dict[tuple[str, Any, int], int] = defaultdict(int)
    orders: dict[tuple[int, int], int] = defaultdict(int)
    today_points: dict[tuple[str, int], int] = defaultdict(int)
    yesterday: dict[str, int] = defaultdict(int)
    recent_currencies = set()
    for currency, at, amount, is_sale in movements:
        local_time = at.astimezone(venue.zone)
        hours[currency, local_time.date(), local_time.hour] += amount
        age = (today - local_time.date()).days
        if is_sale and 1 <= age <= 28:
            orders[local_time.isoweekday(), local_time.hour] += 1
        # Sales later than ``now`` count in no figure, but their currency is listed.
        if age in {0, 1}:
            recent_currencies.add(currency)
        if age == 0 and (
            local_time.hour < local.hour or (local_time.hour == local.hour and at <= now)
        ):
            today_points[currency, local_time.hour] += amount
        if age == 1 and local_time.time() <= local.time():
            yesterday[currency] += amount
    currencies = []
    for currency in sorted({venue.currency, *recent_currencies}):
        today_cents = sum(today_points[currency, hour] for hour in range(24))
        best: list[int] = []  # hourly sums of the best of the last four days with today's weekday
        for weeks in range(1, 5):
            day = today - timedelta(days=7 * weeks)
            points = [hours[currency, day, hour] for hour in range(24)]
            has_movements = any(c == currency and at.astimezone(venue.zone).date() == day
                        for c, at, _, _ in movements)  # fmt: skip
            if has_movements and (not best or sum(points) > sum(best)):
                best = points
        complete = (currency, today) not in incomplete
        currencies.append({
            "currency": currency, "todayCents": today_cents, "yesterdayCents": yesterday[currency],
            "complete": complete,
            "comparisonComplete": complete
            and (currency, today - timedelta(days=1)) not in incomplete,
            "deltaPercent": share_percent(today_cents - yesterday[currency], yesterday[currency]),
            "points": [{"cents": today_points[currency, hour]} for hour in range(local.hour + 1)],
            "peakPoints": [{"cents": cents} for cents in best],
        })  # fmt: skip
    days = [at.astimezone(venue.zone).date() for _, at, _, _ in movements]
    return {
        "locationId": venue.id,
        "activityComplete": bool(days) and min(days) <= today - timedelta(days=28),
        "currencies": currencies,
        "activity": [
            {"weekday": weekday, "hour": hour, "orderCount": count}
            for (weekday, hour), count in sorted(orders.items())
        ],
    }


@settings(max_examples=MERCHANTS, phases=PHASES, suppress_health_check=list(HealthCheck))
@given(merchant=merchants)
def test_a_pulse_equals_a_recount(empty_database: Database, merchant: Merchant) -> None:
    def work(session: Session) -> None:
        write(session, merchant)
        recount = Recount(session, ORGANIZATION, merchant.now)
        operation = OPERATIONS[routes.VENUE_FINANCIAL_PULSE]
        context = RequestContext(session, CALLER, merchant.now, Settings())
        for venue in recount.venues:
            body = operation.parse(json.dumps({"locationId": venue.id}).encode())
            result = parse_json(encode(operation.run(context, body)))
            assert result == {"venues": [expected_pulse(recount, venue, merchant.now)]}
        raise Undo

    with pytest.raises(Undo):
        empty_database.write(work)
