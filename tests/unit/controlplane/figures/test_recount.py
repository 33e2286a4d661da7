"""Tests that all figures of a generated merchant equal a recount of all its rows.

The tests also check that rebuilt rollups equal the rollups that were updated with each sale.
`make test-figures` uses 2,000 merchants.
"""

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy.orm import Session

from agent.wire.codec import encode, parse_json
from controlplane.analytics import routes
from controlplane.analytics.registry import OPERATIONS
from controlplane.merchant.rebuild import rebuild
from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.settings import Settings
from controlplane.storage.database import Database
from tests.sizes import amount
from tests.unit.controlplane.figures.merchants import (
    ORGANIZATION,
    Merchant,
    Query,
    merchants,
    queries,
    write,
)
from tests.unit.controlplane.figures.recount import Json, Recount

MERCHANTS = amount(medium=5, large=150, variable="FIGURES_MERCHANTS")
PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.target)
"""All phases except shrinking and the explanation of failures.

Shrinking is slow, because each of its steps writes a merchant.
"""
CALLER = Caller(uuid.uuid4(), ORGANIZATION, can_write=False)


class Undo(Exception):
    """Ends a transaction without a change, so that the next merchant finds an empty database."""


def call_operation(session: Session, merchant: Merchant, path: str, body: dict[str, Any]) -> Any:
    operation = OPERATIONS[path]
    context = RequestContext(session, CALLER, merchant.now, Settings())
    content = json.dumps(body).encode()
    return parse_json(encode(operation.run(context, operation.parse(content))))


def without_intervals(windows: list[Json]) -> list[Json]:
    return [{name: each[name] for name in each if name != "intervals"} for each in windows]


def check_figures(session: Session, merchant: Merchant, query: Query) -> None:
    write(session, merchant)
    recount = Recount(session, ORGANIZATION, merchant.now)
    ids = [each.id for each in recount.venues]
    location_ids = ids if query.is_for_all_locations else [query.body()["locationId"]]
    days = recount.days(location_ids, query.period, query.first, query.last)
    previous_days = recount.previous(days)
    _check_dashboard(
        call_operation(session, merchant, routes.DASHBOARD, query.body()),
        recount,
        days,
        previous_days,
    )
    _check_summary(
        call_operation(session, merchant, routes.FINANCIAL_SUMMARY, query.body()),
        recount,
        days,
        previous_days,
    )
    _check_deprecated_operations(
        lambda path, body: call_operation(session, merchant, path, body), query, recount, days
    )
    wrong_rows = rebuild(session)
    assert set(wrong_rows.values()) == {0}


def _check_dashboard(reply: Json, recount: Recount, days: Any, previous_days: Any) -> None:
    current = recount.currencies(days)
    assert reply["financial"]["current"]["currencies"] == current
    assert reply["financial"]["previous"]["currencies"] == recount.currencies(previous_days)
    assert without_intervals(reply["windows"]) == recount.windows(days)
    assert without_intervals(reply["financial"]["previous"]["windows"]) == recount.windows(
        previous_days
    )
    assert reply["coverage"] == [
        {"currency": each["currency"], "coverage": each["figures"]["coverage"]} for each in current
    ]
    for part in reply["buckets"]:
        assert in_order(part["buckets"]) == recount.buckets(days, part["currency"])
    assert {c["currency"] for c in reply["buckets"]} == {
        c["currency"] for c in current
        if recount.buckets(days, c["currency"])
        or any(v.currency == c["currency"] for v in recount.venues if v.id in days)
    }  # fmt: skip
    _check_items(reply["financialItems"], recount.items(days))
    _check_trading(reply["financialTrading"], recount.trading(days))


def _check_summary(reply: Json, recount: Recount, days: Any, previous_days: Any) -> None:
    for part, window in ((reply["current"], days), (reply["previous"], previous_days)):
        assert without_intervals(part["windows"]) == recount.windows(window)
        expected = recount.currencies(window)
        for each in expected:
            each["buckets"] = recount.buckets(window, each["currency"])
        for each in part["currencies"]:
            each["buckets"] = in_order(each["buckets"])
        assert part["currencies"] == expected


def _check_deprecated_operations(
    call: Callable[[str, dict[str, Any]], Any], query: Query, recount: Recount, days: Any
) -> None:
    types = None if query.types is None else list(query.types)
    body = query.body() | ({} if types is None else {"paymentTypes": types})
    expected = recount.currencies(days, types)
    sales = call(routes.SALES, body)["currencies"]
    assert {each["currency"]: each["figures"] for each in sales} == {
        each["currency"]: each["figures"] for each in expected
    }
    previous = {
        each["currency"]: each["figures"]["netCents"]
        for each in recount.currencies(recount.previous(days), types)
    }
    assert all(each["previousNetCents"] == previous.get(each["currency"], 0) for each in sales)
    assert call(routes.RECONCILIATION, body)["currencies"] == [
        {"currency": each["currency"], "methods": each["methods"],
         "coverage": each["figures"]["coverage"]} for each in expected
    ]  # fmt: skip
    assert call(routes.VENUES, body)["currencies"] == [
        {"currency": each["currency"], "locations": each["locations"]} for each in expected
    ]
    _check_items(call(routes.ITEMS, body)["currencies"], recount.items(days, types))
    _check_trading(call(routes.TREND, body)["currencies"], recount.trading(days, types))
    for part in call(routes.CHART, query.body())["currencies"]:
        assert in_order(part["buckets"]) == recount.buckets(days, part["currency"])


def _check_items(reply: list[Json], expected: dict[str, list[Json]]) -> None:
    assert {each["currency"] for each in reply} == set(expected)
    for part in reply:
        assert part["omittedCount"] == 0
        items_by_key = {
            each["variationId"] or each["name"]: each for each in expected[part["currency"]]
        }
        assert len(part["items"]) == len(items_by_key)
        for item in part["items"]:
            expected_item = dict(items_by_key[item["variationId"] or item["name"]])
            # Names are not compared here, because a renamed article is listed under its latest
            # name. `test_items.py` tests this.
            assert item | {"name": ""} == expected_item | {"name": ""}


def _check_trading(reply: list[Json], expected: Any) -> None:
    assert {
        each["currency"]: {
            day["localDate"]: (day["tradingRevenueCents"], day["saleCount"]) for day in each["days"]
        }
        for each in reply
    } == expected
    for each in reply:
        assert each["tradingRevenueCents"] == sum(d["tradingRevenueCents"] for d in each["days"])


def in_order(buckets: list[Json]) -> list[Json]:
    return sorted(buckets, key=lambda b: (b["locationId"], b["localDate"], b["localHour"]))


@settings(max_examples=MERCHANTS, phases=PHASES, suppress_health_check=list(HealthCheck))
@given(data=st.data(), merchant=merchants)
def test_figures_equal_a_recount(
    empty_database: Database, data: st.DataObject, merchant: Merchant
) -> None:
    query = data.draw(queries(merchant))

    def work(session: Session) -> None:
        check_figures(session, merchant, query)
        raise Undo

    with pytest.raises(Undo):
        empty_database.write(work)


@pytest.fixture(scope="module")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An empty database. Each test undoes its changes with `Undo`."""
    database = Database(str(tmp_path_factory.mktemp("figures") / "figures.db"))
    yield database
    database.close()
