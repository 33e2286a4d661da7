"""Tests of the ten operations that return figures: permissions, errors and deprecation."""

import itertools
import json
from typing import Any

import pytest

from agent.wire.codec import validate
from controlplane.analytics import messages, query, routes
from controlplane.analytics.registry import OPERATIONS
from controlplane.settings import Settings
from controlplane.storage.database import Database
from tests.unit.controlplane.running_service import FakeClock, RunningService, service_on

REPLIES = {
    routes.DASHBOARD: messages.Dashboard,
    routes.CHART: messages.Chart,
    routes.SALES: messages.Sales,
    routes.ITEMS: messages.Items,
    routes.RECONCILIATION: messages.Reconciliation,
    routes.TREND: messages.Trend,
    routes.VENUES: messages.Venues,
    routes.VENUE_FINANCIAL_PULSE: messages.FinancialPulse,
    routes.VENUE_PULSE: messages.Pulse,
    routes.FINANCIAL_SUMMARY: messages.FinancialSummary,
}
NOT_DEPRECATED = {routes.DASHBOARD, routes.VENUE_FINANCIAL_PULSE, routes.FINANCIAL_SUMMARY}
WITH_PERIOD = set(REPLIES) - {routes.VENUE_FINANCIAL_PULSE, routes.VENUE_PULSE}
HOURLY = {routes.DASHBOARD, routes.CHART, routes.FINANCIAL_SUMMARY}
"""The operations that list hours. They refuse a query for too many days of too many locations."""
WITH_PAYMENT_TYPES = WITH_PERIOD - {routes.DASHBOARD, routes.CHART, routes.FINANCIAL_SUMMARY}


async def query_figures(
    service: RunningService, path: str, api_key: str | None = None, **body: Any
) -> Any:
    content = json.dumps({"locationId": "loc-0001", **body})
    return await service.post(path, content, api_key=api_key)


def test_every_operation_of_the_contract_is_served() -> None:
    assert set(OPERATIONS) == set(REPLIES)
    assert {path.split("v1/")[1] for path in OPERATIONS} == {
        "analytics/dashboard", "analytics/chart", "analytics/sales", "analytics/items",
        "analytics/reconciliation", "analytics/trend", "analytics/venues",
        "analytics/venueFinancialPulse", "analytics/venuePulse", "reports/financialSummary",
    }  # fmt: skip


@pytest.mark.parametrize("path", REPLIES)
async def test_a_reply_fits_its_message_type(merchant: RunningService, path: str) -> None:
    reply = await query_figures(merchant, path)
    assert reply.status_code == 200, reply.text
    validate(reply.json(), REPLIES[path])


@pytest.mark.parametrize("path", REPLIES)
async def test_deprecated_operations_name_their_successor(
    merchant: RunningService, path: str
) -> None:
    headers = (await query_figures(merchant, path)).headers
    if path in NOT_DEPRECATED:
        assert "deprecation" not in headers
        assert "link" not in headers
        return
    successor = routes.VENUE_FINANCIAL_PULSE if path == routes.VENUE_PULSE else routes.DASHBOARD
    assert headers["deprecation"].startswith("@")
    assert headers["deprecation"][1:].isdigit()
    assert headers["link"] == f'<{successor}>; rel="successor-version"'


@pytest.mark.parametrize("path", REPLIES)
async def test_a_read_only_key_may_query_figures(merchant: RunningService, path: str) -> None:
    key = merchant.make_key(can_write=False, locations=["loc-0001"])
    assert (await query_figures(merchant, path, key)).status_code == 200


@pytest.mark.parametrize("path", REPLIES)
async def test_a_foreign_location_is_refused_whether_or_not_it_exists(
    merchant: RunningService, path: str
) -> None:
    key = merchant.make_key(locations=["loc-0001"])
    for location in ("loc-0002", "loc-none"):
        refused = await query_figures(merchant, path, key, locationId=location)
        assert (refused.status_code, refused.json()["code"]) == (403, "foreign_location")


@pytest.mark.parametrize("path", REPLIES)
async def test_a_key_of_another_organization_gets_location_not_found(
    merchant: RunningService, path: str
) -> None:
    key = merchant.make_key(organization_id="org-0002")
    refused = await query_figures(merchant, path, key)
    assert (refused.status_code, refused.json()["code"]) == (404, "location_not_found")


@pytest.mark.parametrize("path", REPLIES)
async def test_figures_require_a_key(merchant: RunningService, path: str) -> None:
    refused = await merchant.http.post(path, content="{}")
    assert refused.status_code == 401


@pytest.mark.parametrize("path", REPLIES)
@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"locationId": ""}, "locationId"),
        ({"locationId": None}, "locationId"),
        ({"locationId": "loc-0001\x00"}, "locationId"),  # PostgreSQL refuses NUL in a text
        ({"locationId": "\ud800"}, "locationId"),
        ({"locationID": "loc-0001"}, "locationID"),
        ({"first": "2026-01-01"}, "first"),
    ],
)
async def test_an_invalid_field_of_the_body_is_named(
    merchant: RunningService, path: str, wrong: dict[str, Any], field: str
) -> None:
    refused = await query_figures(merchant, path, **wrong)
    assert refused.status_code == 400
    assert list(refused.json()["errors"]) == [field]


@pytest.mark.parametrize("path", sorted(WITH_PERIOD))
@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"period": "lastYear"}, "period"),
        ({"period": None}, "period"),
        ({"period": "custom"}, "from"),
        ({"period": "custom", "from": "2026-01-01"}, "to"),
        ({"period": "custom", "from": "2026-01-02", "to": "2026-01-01"}, "to"),
        ({"period": "custom", "from": "2026-01-01", "to": "2027-01-02"}, "to"),
        ({"period": "custom", "from": "2026-1-1", "to": "2026-01-01"}, "from"),
        ({"period": "custom", "from": "2026-01-01", "to": "2026-02-30"}, "to"),
        ({"period": "custom", "from": "2026-01-01T00:00:00Z", "to": "2026-02-20"}, "from"),
        ({"period": "custom", "from": 1, "to": "2026-02-20"}, "from"),
        ({"from": "yesterday"}, "from"),
        ({"period": "last7", "to": "2026-02-30"}, "to"),
        ({"locationMode": "some"}, "locationMode"),
    ],
)
async def test_the_refusal_of_an_invalid_period_names_the_field(
    merchant: RunningService, path: str, wrong: dict[str, Any], field: str
) -> None:
    refused = await query_figures(merchant, path, **wrong)
    assert refused.status_code == 400
    assert list(refused.json()["errors"]) == [field]


@pytest.mark.parametrize("path", sorted(WITH_PERIOD))
async def test_figures_of_a_year_are_returned(merchant: RunningService, path: str) -> None:
    year = {"period": "custom", "from": "2025-11-20", "to": "2026-11-20"}
    reply = await query_figures(merchant, path, locationMode="all", **year)
    assert reply.status_code == 200, reply.text
    validate(reply.json(), REPLIES[path])


@pytest.mark.parametrize("path", sorted(WITH_PERIOD))
async def test_hourly_figures_are_limited_by_locations_times_days(
    merchant: RunningService, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 2026-08-13 to 2026-11-20 are 100 days, and the merchant has 4 locations.
    monkeypatch.setattr(query, "LOCATION_DAYS_MAX", 400)
    for first, fits in (("2026-08-13", True), ("2026-08-12", path not in HOURLY)):
        days = {"period": "custom", "from": first, "to": "2026-11-20"}
        reply = await query_figures(merchant, path, locationMode="all", **days)
        assert reply.status_code == (200 if fits else 400)
        if not fits:
            assert list(reply.json()["errors"]) == ["to"]
    assert (await query_figures(merchant, path, **days)).status_code == 200
    monkeypatch.setattr(query, "LOCATION_DAYS_MAX", 4)
    # The limit does not apply to a query for at most 92 days.
    days["from"] = "2026-08-21"
    assert (await query_figures(merchant, path, locationMode="all", **days)).status_code == 200


async def test_processor_time_of_figures_is_charged(sales_database: Database) -> None:
    settings = Settings(call_share=0.1, call_burst_s=1, refusal_delay_s=0)
    times_s = itertools.count(step=0)
    clock = FakeClock()
    async with service_on(
        sales_database, settings, clock, thread_time=lambda: next(times_s)
    ) as service:
        for path in REPLIES:
            assert (await query_figures(service, path)).status_code == 200
        # The next call takes some seconds of processor time. The settings permit a burst of only
        # 1 s, so the following call is refused.
        times_s = itertools.count(step=2)
        assert (await query_figures(service, routes.DASHBOARD)).status_code == 200
        assert (await query_figures(service, routes.DASHBOARD)).status_code == 429
        clock.advance(100)
        assert (await query_figures(service, routes.DASHBOARD)).status_code == 200


@pytest.mark.parametrize("path", sorted(WITH_PERIOD))
@pytest.mark.parametrize(
    "dates",
    [
        {"from": "2026-01-01"},
        {"to": "2026-01-01"},
        {"from": "2026-01-02", "to": "2026-01-01"},
        {"from": "2020-01-01", "to": "2026-01-01"},
    ],
)
async def test_dates_are_ignored_unless_the_period_is_custom(
    merchant: RunningService, path: str, dates: dict[str, str]
) -> None:
    for period in ({}, {"period": "last7"}):
        plain = await query_figures(merchant, path, **period)
        dated = await query_figures(merchant, path, **period, **dates)
        assert (dated.status_code, dated.content) == (200, plain.content)


@pytest.mark.parametrize("path", sorted(WITH_PERIOD))
async def test_only_some_operations_accept_payment_types(
    merchant: RunningService, path: str
) -> None:
    result = await query_figures(merchant, path, paymentTypes=["cash", "mixed"])
    assert result.status_code == (200 if path in WITH_PAYMENT_TYPES else 400)


@pytest.mark.parametrize("path", sorted(WITH_PAYMENT_TYPES))
@pytest.mark.parametrize("types", [[], ["cheque"], "cash", None])
async def test_the_refusal_of_wrong_payment_types_names_the_field(
    merchant: RunningService, path: str, types: Any
) -> None:
    refused = await query_figures(merchant, path, paymentTypes=types)
    assert refused.status_code == 400
    assert [error.split(".")[0] for error in refused.json()["errors"]] == ["paymentTypes"]


@pytest.mark.parametrize("path", sorted(WITH_PERIOD))
async def test_location_mode_all_selects_every_location_that_the_key_may_see(
    merchant: RunningService, path: str
) -> None:
    def location_ids(reply: Any) -> set[str]:
        body = reply.json()
        windows = body["windows"] if "windows" in body else body["current"]["windows"]
        return {window["locationId"] for window in windows}

    whole = await query_figures(merchant, path, locationMode="all")
    assert location_ids(whole) == {"loc-0001", "loc-0002", "loc-0003", "loc-0004"}
    key = merchant.make_key(locations=["loc-0001", "loc-0003"])
    some = await query_figures(merchant, path, key, locationMode="all")
    assert location_ids(some) == {"loc-0001", "loc-0003"}


async def test_a_location_without_a_time_zone_is_reported(merchant: RunningService) -> None:
    reply = (await query_figures(merchant, routes.DASHBOARD, locationMode="all")).json()
    locations_in_utc = {
        window["locationId"] for window in reply["windows"] if window["fellBackToUtc"]
    }
    assert locations_in_utc == {"loc-0003"}
    fallback_counts = [
        coverage["coverage"]["timezoneFallbackCount"]
        for coverage in reply["coverage"]
        if coverage["currency"] == "AED"
    ]
    assert fallback_counts == [1]


async def test_dashboard_and_summary_agree(merchant: RunningService) -> None:
    body = {"period": "last7", "locationMode": "all"}
    dashboard = (await query_figures(merchant, routes.DASHBOARD, **body)).json()
    summary = (await query_figures(merchant, routes.FINANCIAL_SUMMARY, **body)).json()
    for part in ("current", "previous"):
        for currency in summary[part]["currencies"]:
            currency.pop("buckets")
        assert dashboard["financial"][part] == summary[part]


# ----------------------------------------------------------------------- locations of the console


async def venues(service: RunningService, api_key: str | None = None) -> list[Any]:
    reply = await service.post("/console/api/venues", "{}", api_key=api_key)
    assert reply.status_code == 200, reply.text
    assert reply.json()["omittedCount"] == 0
    return list(reply.json()["venues"])


async def test_the_console_lists_the_locations_a_key_may_see(merchant: RunningService) -> None:
    listed = await venues(merchant)
    assert [location["name"] for location in listed] == sorted(
        location["name"] for location in listed
    )
    assert {location["locationId"] for location in listed} == {f"loc-000{n}" for n in (1, 2, 3, 4)}
    assert any(location["fellBackToUtc"] and location["timeZone"] == "UTC" for location in listed)
    some = await venues(merchant, merchant.make_key(locations=("loc-0002",)))
    assert [location["locationId"] for location in some] == ["loc-0002"]


async def test_the_console_lists_no_location_of_another_organization(
    merchant: RunningService,
) -> None:
    assert await venues(merchant, merchant.make_key(organization_id="org-other")) == []
