"""Tests that `query_sales` returns the figures of the dashboard in every grouping."""

import json
from collections import defaultdict
from datetime import date
from itertools import combinations
from typing import Any, get_args

import pytest

from controlplane.agent_protocol.tools.registry import TOOLS
from controlplane.agent_protocol.tools.sales_groups import (
    METRICS,
    GroupBy,
    Metric,
    supported_metrics,
)
from tests.unit.controlplane.agent_protocol.agent import Agent

Json = dict[str, Any]
GROUPS: tuple[GroupBy, ...] = get_args(GroupBy)
PAIRS = list(combinations(GROUPS, 2))
MONTH = {"from": "2026-10-20", "to": "2026-11-18"}
ADDITIVE_METRICS = ("netCents", "saleCents", "grossCents", "discountCents", "refundCents")


async def dashboard(agent: Agent, **body: Any) -> Json:
    request_body = {"locationId": "loc-0001", "locationMode": "all", **body}
    path = "/api/public/v1/analytics/dashboard"
    reply = await agent.service.post(path, json.dumps(request_body))
    assert reply.status_code == 200, reply.text
    figures: Json = reply.json()
    return figures


def sum_by_currency(rows: list[Json], metric: str) -> dict[str, int]:
    results: defaultdict[str, int] = defaultdict(int)
    for row in rows:
        results[row["currency"]] += row["metrics"][metric]
    return dict(results)


@pytest.mark.parametrize("period", ["today", "yesterday", "last7", "thisMonth", "custom"])
async def test_totals_windows_and_coverage_equal_the_dashboard(agent: Agent, period: str) -> None:
    request = MONTH if period == "custom" else {"period": period}
    result = await agent.call("query_sales", **request, metrics=list(supported_metrics(()).metrics))
    figures = await dashboard(agent, **({"period": period} | (MONTH if period == "custom" else {})))
    assert result["windows"] == figures["windows"]
    currencies = figures["financial"]["current"]["currencies"]
    assert [total["currency"] for total in result["totals"]] == [e["currency"] for e in currencies]
    assert currencies
    for total, currency in zip(result["totals"], currencies, strict=True):
        assert total["coverage"] == currency["figures"]["coverage"]
        for name, value in total["metrics"].items():
            assert value == currency["figures"][name], name
    rows = {row["currency"]: row["metrics"] for row in result["rows"]}
    assert rows
    for total in result["totals"]:
        if total["currency"] in rows:
            assert rows[total["currency"]] == total["metrics"]


@pytest.mark.medium
@pytest.mark.parametrize("groups", [*((group,) for group in GROUPS), *PAIRS], ids="-".join)
async def test_the_groups_add_up_to_the_totals_without_groups(
    agent: Agent, groups: tuple[GroupBy, ...]
) -> None:
    metrics: list[str] = [
        metric for metric in ADDITIVE_METRICS if metric in supported_metrics(groups).metrics
    ]
    assert metrics
    whole = await agent.call("query_sales", **MONTH, metrics=metrics)
    grouped = {"groupBy": list(groups), "metrics": metrics, "limit": 500}
    periods = [MONTH]
    whole_month = await agent.call("query_sales", **MONTH, **grouped)
    if whole_month["omittedCount"]:  # then the rows of each single day are added up
        periods = [
            {"from": f"2026-{day}", "to": f"2026-{day}"}
            for day in [*(f"10-{number}" for number in range(20, 32)),
                        *(f"11-{number:02}" for number in range(1, 19))]
        ]  # fmt: skip
    rows = []
    for period in periods:
        part = await agent.call("query_sales", **period, **grouped)
        assert part["omittedCount"] == 0
        rows += part["rows"]
    keys = [(row["currency"], *row["group"].items()) for row in whole_month["rows"]]
    assert len(keys) == len(set(keys))
    for metric in metrics:
        expected = {total["currency"]: total["metrics"][metric] for total in whole["totals"]}
        assert sum_by_currency(rows, metric) == expected
        assert any(expected.values())


async def test_hours_equal_the_buckets_of_the_dashboard(agent: Agent) -> None:
    metrics = ["grossCents", "discountCents", "refundCents", "netCents", "tradingRevenueCents",
               "saleCount", "refundCount"]  # fmt: skip
    day = {"from": "2026-11-10", "to": "2026-11-10"}
    grouping = {"groupBy": ["location", "hour"], "metrics": metrics, "limit": 500}
    table = await agent.call("query_sales", **day, **grouping)
    buckets = (await dashboard(agent, period="custom", **day))["buckets"]
    expected = {
        (currency["currency"], bucket["locationId"], bucket["localHour"]): {
            name: bucket[name] for name in metrics
        }
        for currency in buckets
        for bucket in currency["buckets"]
    }
    sales_by_hour = {
        (row["currency"], row["group"]["location"], row["group"]["hour"]): row["metrics"]
        for row in table["rows"]
    }
    assert sales_by_hour == expected != {}


async def test_items_equal_the_items_of_the_dashboard(agent: Agent) -> None:
    metrics = ["netCents", "quantityMilli", "refundedQuantityMilli", "lineCount"]
    grouping = {"groupBy": ["item"], "metrics": metrics, "limit": 500}
    table = await agent.call("query_sales", **MONTH, **grouping)
    items = (await dashboard(agent, period="custom", **MONTH))["financialItems"]
    expected = [
        (currency["currency"], item["variationId"] or item["name"], item["name"],
         {name: item[name] for name in metrics})
        for currency in items
        for item in currency["items"]
    ]  # fmt: skip
    values = [
        (row["currency"], row["group"]["item"], row["label"], row["metrics"])
        for row in table["rows"]
    ]
    assert sorted(values, key=repr) == sorted(expected, key=repr)
    assert values


async def test_locations_equal_the_locations_of_the_dashboard(agent: Agent) -> None:
    metrics = list(supported_metrics(("location",)).metrics)
    table = await agent.call("query_sales", **MONTH, groupBy=["location"], metrics=metrics)
    dashboard_reply = await dashboard(agent, period="custom", **MONTH)
    expected = {
        (currency["currency"], location["locationId"]): {
            name: location["figures"][name] for name in metrics
        }
        for currency in dashboard_reply["financial"]["current"]["currencies"]
        for location in currency["locations"]
        if location["figures"]["saleCount"]
    }
    result = {(row["currency"], row["group"]["location"]): row["metrics"] for row in table["rows"]}
    assert {key: result[key] for key in expected} == expected != {}
    assert table["rows"][0]["label"]


async def test_figures_of_employees_equal_the_sums_over_their_sales(agent: Agent) -> None:
    grouping = {"groupBy": ["employee"], "metrics": ["saleCount", "saleCents"], "limit": 500}
    table = await agent.call("query_sales", **MONTH, locations=["loc-0001"], **grouping)
    counts: defaultdict[tuple[str, str | None], int] = defaultdict(int)
    cents: defaultdict[tuple[str, str | None], int] = defaultdict(int)
    cursor: dict[str, str] = {}
    interval = table["windows"][0]["intervals"][0]
    filters = {"locations": ["loc-0001"], "status": "completed",
               "from": interval["startUtc"], "to": interval["endUtc"]}  # fmt: skip
    for _ in range(40):
        page = await agent.call(
            "read_business_records", dataset="sales", filters=filters, limit=100, **cursor
        )
        for row in page["rows"]:
            key = (row["currency"], row["employeeId"])
            counts[key] += 1
            cents[key] += row["saleCents"]
        if page["nextCursor"] is None:
            break
        cursor = {"cursor": page["nextCursor"]}
    sales_by_employee = {
        (row["currency"], row["group"]["employee"]): row["metrics"]
        for row in table["rows"]
        if row["metrics"]["saleCount"]
    }
    assert {key: row["saleCount"] for key, row in sales_by_employee.items()} == dict(counts)
    assert {key: row["saleCents"] for key, row in sales_by_employee.items()} == dict(cents)
    assert len(sales_by_employee) > 2


async def test_days_are_in_order_of_time_and_items_in_order_of_net_sales(agent: Agent) -> None:
    days = (await agent.call("query_sales", **MONTH, groupBy=["day"], limit=500))["rows"]
    groups = [(row["currency"], row["group"]["day"]) for row in days]
    assert groups == sorted(groups)
    weekdays = (await agent.call("query_sales", **MONTH, groupBy=["weekday"]))["rows"]
    assert {row["group"]["weekday"] for row in weekdays} == set(range(1, 8))
    monday = sum(
        row["metrics"]["netCents"]
        for row in days
        if date.fromisoformat(row["group"]["day"]).isoweekday() == 1
        and row["currency"] == weekdays[0]["currency"]
    )
    assert weekdays[0]["metrics"]["netCents"] == monday
    goods = (await agent.call("query_sales", **MONTH, groupBy=["item"], limit=500))["rows"]
    nets = [row["metrics"]["netCents"] for row in goods if row["currency"] == goods[0]["currency"]]
    assert nets == sorted(nets, reverse=True)


@pytest.mark.parametrize("group", ["day", "item", "month"])
async def test_a_limit_applies_to_each_currency(agent: Agent, group: str) -> None:
    whole = await agent.call("query_sales", **MONTH, groupBy=[group], limit=500)
    some = await agent.call("query_sales", **MONTH, groupBy=[group], limit=1)
    first: dict[str, Json] = {}
    for row in whole["rows"]:
        first.setdefault(row["currency"], row)
    assert list(first) == ["AED", "EUR"]
    assert some["rows"] == list(first.values())
    assert some["omittedCount"] == len(whole["rows"]) - 2
    assert some["totals"] == whole["totals"]


async def test_one_currency_can_be_selected(agent: Agent) -> None:
    whole = await agent.call("query_sales", **MONTH, groupBy=["item"], limit=500)
    euros = await agent.call("query_sales", **MONTH, groupBy=["item"], limit=3, currency="EUR")
    euro_rows = [row for row in whole["rows"] if row["currency"] == "EUR"]
    assert euros["rows"] == euro_rows[:3]
    assert euros["omittedCount"] == len(euro_rows) - 3
    assert euros["totals"] == [total for total in whole["totals"] if total["currency"] == "EUR"]
    none = await agent.call("query_sales", **MONTH, currency="JPY")
    assert (none["rows"], none["totals"]) == ([], [])


@pytest.mark.parametrize("groups", [[], ["item"], ["hour"], ["day"], ["employee"], ["location"]])
async def test_hours_of_the_day_can_be_selected(agent: Agent, groups: list[str]) -> None:
    groups_and_hour = [*groups, "hour"] if groups not in ([], ["hour"]) else ["hour"]
    whole = await agent.call("query_sales", **MONTH, groupBy=groups_and_hour, limit=500)
    replies = [whole]
    if whole["omittedCount"]:  # then the rows of each single day are added up
        days = [f"2026-11-{day:02}" for day in range(1, 19)]
        days += [f"2026-10-{day}" for day in range(20, 32)]
        replies = [
            await agent.call(
                "query_sales", groupBy=groups_and_hour, limit=500, **{"from": day, "to": day}
            )
            for day in days
        ]  # fmt: skip
    morning = await agent.call(
        "query_sales", **MONTH, groupBy=groups, hours=list(range(12)), limit=500
    )
    assert morning["omittedCount"] == 0
    expected: defaultdict[Any, int] = defaultdict(int)
    for reply in replies:
        assert reply["omittedCount"] == 0
        for row in reply["rows"]:
            if row["group"]["hour"] < 12:
                key = (row["currency"], *(row["group"][group] for group in groups))
                expected[key] += row["metrics"]["netCents"]
    results = {
        (row["currency"], *row["group"].values()): row["metrics"]["netCents"]
        for row in morning["rows"]
    }
    assert any(expected.values())
    assert {key: value for key, value in results.items() if value} == {
        key: value for key, value in expected.items() if value
    }
    assert sum_by_currency(morning["rows"], "netCents") == {
        total["currency"]: total["metrics"]["netCents"] for total in morning["totals"]
    }


async def test_the_schema_describes_the_order_and_the_limit() -> None:
    tool = TOOLS["query_sales"]
    order = tool.output_schema["properties"]["rows"]["description"]
    assert "by currency" in order
    assert "netCents" in order
    assert "each currency" in tool.input_schema["properties"]["limit"]["description"]


async def test_query_sales_returns_only_the_locations_of_the_key(agent: Agent) -> None:
    key = agent.service.make_key(locations=["loc-0002"])
    table = await agent.call("query_sales", key, **MONTH, groupBy=["location"])
    assert {row["group"]["location"] for row in table["rows"]} == {"loc-0002"}
    by_locations = await agent.call(
        "query_sales", **MONTH, locations=["loc-0002"], groupBy=["location"]
    )
    assert table == by_locations


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"period": "lastYear"}, "period must be"),
        ({"period": "today", "from": "2026-01-01"}, "either period or from and to"),
        ({"from": "2026-01-01"}, "to is needed"),
        ({"from": "2026-02-01", "to": "2026-01-01"}, "must not be before `from`"),
        ({"from": "2025-01-01", "to": "2026-06-01"}, "less than 366 days"),
        ({"from": "2026-01-01", "to": "2026-06-01", "groupBy": ["employee"]}, "at most 92 days"),
        ({"from": "2026-01-01", "to": "2026-06-01", "groupBy": ["item", "hour"]},
         "item and hour covers at most 92 days"),
        ({"from": "2026-01-01", "to": "2026-06-01", "hours": [1]}, "by hours covers at most 92"),
        ({"hours": [24]}, "hours.0 must be at most 23"),
        ({"currency": "euro"}, "currency must"),
        ({"from": "yesterday", "to": "2026-06-01"}, "from must be a date such as 2026-11-20"),
        ({"groupBy": ["day", "hour", "item"]}, "at most 2 entries"),
        ({"groupBy": ["colour"]}, "groupBy.0 must be"),
        ({"groupBy": ["item"], "metrics": ["vatCents"]}, "Supported metrics: netCents"),
        ({"metrics": ["profit"]}, "metrics.0 must be"),
        ({"limit": 501}, "limit must be at most 500"),
        ({"limit": 0}, "limit must be at least 1"),
        ({"locations": "loc-0001"}, "locations must be a list"),
        ({"locations": None}, "locations must not be null"),
    ],
)  # fmt: skip
async def test_an_error_message_explains_what_to_change(
    agent: Agent, wrong: Json, error: str
) -> None:
    assert error in await agent.tool_error("query_sales", **wrong)


def test_every_metric_is_described() -> None:
    assert set(METRICS) == set(get_args(Metric))
