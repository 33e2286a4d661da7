"""Tests that each tool returns the same on PostgreSQL as on SQLite."""

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
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("business_context", {}),
    *(("query_sales", {"period": "last7", "groupBy": each, "limit": 500}) for each in GROUPS),
    ("query_sales", {"from": "2025-11-21", "to": "2026-11-20", "groupBy": ["month"]}),
    ("query_sales", {"period": "last7", "groupBy": ["item"], "currency": "EUR", "limit": 3}),
    ("query_sales", {"period": "last7", "groupBy": ["item"], "hours": [7, 8, 9, 10, 11]}),
    *(("read_business_records", {"dataset": each, "limit": 100}) for each in (
        "sales", "refunds", "employees", "pointsOfSale", "devices", "deviceRequests",
        "deviceReports")),
    ("read_business_records", {"dataset": "sales", "filters": {
        "from": "2026-11-10T00:00:00Z", "to": "2026-11-12T00:00:00Z", "paymentType": "card",
        "employeeId": "emp-0001-2", "locations": ["loc-0001"], "status": "completed"}}),
    ("read_business_records", {"dataset": "sales", "filters": {"number": "0001-261115-00003"}}),
    ("read_business_records", {"dataset": "sales", "filters": {"ticketNumber": "3"}}),
    *(("read_merchant_data", {"section": each}) for each in (
        "organization", "locations", "fees", "uoms", "paymentMethods")),
    ("read_catalog", {"limit": 100}),
    ("read_catalog", {"search": "A", "status": "active"}),
]  # fmt: skip


def answers(database: Database) -> list[dict[str, Any]]:
    """Return the results of `CALLS`, then of two equal calls of `set_catalog_availability`."""
    caller = Caller(uuid.uuid4(), ORGANIZATION, can_write=True)

    def ask(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        request = read_arguments(TOOLS[tool], arguments)

        def work(session: Any) -> dict[str, Any]:
            context = ToolContext(session, caller, NOW, Settings(), KEY)
            results: dict[str, Any] = to_plain(TOOLS[tool].run(context, request)[1])
            return results

        return (database.write if TOOLS[tool].writes else database.read)(work)

    replies = [ask(*each) for each in CALLS]
    good = ask("read_catalog", {"limit": 1})["rows"][0]
    change = {"goodId": good["goodId"], "variationId": good["variations"][0]["variationId"]}
    for _ in range(2):
        replies.append(ask("set_catalog_availability", change | {"status": "inactive"}))
    return replies


@pytest.mark.medium
@pytest.mark.needs("postgresql")
def test_each_tool_returns_the_same_results_on_postgresql_and_sqlite(tmp_path: Path) -> None:
    replies = []
    with new_database() as url:
        for each in (str(tmp_path / "service.db"), url):
            with closing(Database(each)) as database:
                database.write(lambda session: load(session, PLAN, NOW))
                replies.append(answers(database))
    for (tool, arguments), lite, post in zip(CALLS, *replies, strict=False):
        assert post == lite, (tool, arguments)
    assert [each["changed"] for each in replies[1][-2:]] == [True, False]
    assert any(each["rows"] for each in replies[1] if "rows" in each)
