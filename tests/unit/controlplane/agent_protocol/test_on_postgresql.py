"""Tests that each tool returns the same results on PostgreSQL as on SQLite."""

import uuid
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

import pytest

from agent.wire.codec import to_plain
from controlplane.agent_protocol.tools.registry import TOOLS
from controlplane.agent_protocol.tools.sales_groups import GroupBy
from controlplane.agent_protocol.tools.tool import ToolContext
from controlplane.operation.caller import Caller
from controlplane.sandbox.loading import load
from controlplane.sandbox.plan import ORGANIZATION, Plan
from controlplane.settings import Settings
from controlplane.storage.database import Database
from controlplane.web.agent_protocol.dispatch import read_arguments
from tests.postgresql import new_database
from tests.unit.controlplane.running_service import FakeClock

NOW = FakeClock().now
KEY = b"k" * 32
PLAN = Plan(locations=4, days=20, sales_per_day=10, goods=9, until=NOW.date(), is_awkward=True)
GROUPS = [list(pair) for pair in combinations(get_args(GroupBy), 2)]
Call = tuple[str, dict[str, Any]]
"""The name of a tool, and its arguments."""
CALLS: list[Call] = [
    ("business_context", {}),
    ("describe_business_data", {}),
    *(("query_sales", {"period": "last7", "groupBy": groups, "limit": 500}) for groups in GROUPS),
    ("query_sales", {"from": "2025-11-21", "to": "2026-11-20", "groupBy": ["month"]}),
    ("query_sales", {"period": "last7", "groupBy": ["item"], "currency": "EUR", "limit": 3}),
    ("query_sales", {"period": "last7", "groupBy": ["item"], "hours": [7, 8, 9, 10, 11]}),
    *(("read_business_records", {"dataset": dataset, "limit": 100}) for dataset in (
        "sales", "refunds", "employees", "pointsOfSale", "devices", "deviceRequests",
        "deviceReports")),
    ("read_business_records", {"dataset": "sales", "filters": {
        "from": "2026-11-10T00:00:00Z", "to": "2026-11-12T00:00:00Z", "paymentType": "card",
        "employeeId": "emp-0001-2", "locations": ["loc-0001"], "status": "completed"}}),
    ("read_business_records", {"dataset": "sales", "filters": {"number": "0001-261115-00003"}}),
    ("read_business_records", {"dataset": "sales", "filters": {"ticketNumber": "3"}}),
    *(("read_merchant_data", {"section": section}) for section in (
        "organization", "locations", "fees", "uoms", "paymentMethods")),
    ("read_catalog", {"limit": 100}),
    ("read_catalog", {"search": "A", "status": "active"}),
]  # fmt: skip


def call_all_tools(database: Database) -> list[tuple[Call, dict[str, Any]]]:
    """Make `CALLS`, then two equal calls of `set_catalog_availability`. Return each call with its
    result.
    """
    caller = Caller(uuid.uuid4(), ORGANIZATION, can_write=True)

    def call_tool(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        request = read_arguments(TOOLS[tool], arguments)

        def run_tool(session: Any) -> dict[str, Any]:
            context = ToolContext(session, caller, NOW, Settings(), KEY)
            results: dict[str, Any] = to_plain(TOOLS[tool].run(context, request)[1])
            return results

        return (database.write if TOOLS[tool].writes else database.read)(run_tool)

    good = call_tool("read_catalog", {"limit": 1})["rows"][0]
    change = {"goodId": good["goodId"], "variationId": good["variations"][0]["variationId"]}
    deactivate: Call = ("set_catalog_availability", change | {"status": "inactive"})
    return [(call, call_tool(*call)) for call in (*CALLS, deactivate, deactivate)]


@pytest.mark.medium
@pytest.mark.needs("postgresql")
def test_each_tool_returns_the_same_results_on_postgresql_and_sqlite(tmp_path: Path) -> None:
    results = []
    with new_database() as url:
        for address in (str(tmp_path / "service.db"), url):
            with closing(Database(address)) as database:
                database.write(lambda session: load(session, PLAN, NOW))
                results.append(call_all_tools(database))
    from_sqlite, from_postgresql = results
    assert {tool for (tool, _), _ in from_sqlite} == set(TOOLS)
    for expected, actual in zip(from_sqlite, from_postgresql, strict=True):
        assert actual == expected
    assert [result["changed"] for _, result in from_postgresql[-2:]] == [True, False]
    assert any(result["rows"] for _, result in from_postgresql if "rows" in result)
