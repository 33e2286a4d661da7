"""Tests of the sales that the console saves as CSV."""

import csv
import io
import json
import uuid
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy.orm import Session

from agent.wire.codec import validate
from controlplane.analytics import sales_table
from controlplane.analytics.messages import FiguresQuery
from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import Refusal
from controlplane.sandbox.plan import ORGANIZATION
from controlplane.settings import Settings
from controlplane.storage.database import Database
from tests.unit.controlplane.running_service import FakeClock, RunningService

NOW = FakeClock().now
SUMMARY = "/api/public/v1/reports/financialSummary"
PATH = "/console/sales-table"
ALL_LOCATIONS = {"locationId": "loc-0001", "locationMode": "all", "period": "last7"}


async def table(service: RunningService, **body: Any) -> list[dict[str, str]]:
    reply = await service.post(PATH, json.dumps(body))
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"] == "text/csv; charset=utf-8"
    assert reply.content.startswith(b"\xef\xbb\xbf")
    return list(csv.DictReader(io.StringIO(reply.content.decode("utf-8-sig"), newline="")))


@pytest.mark.parametrize("mode", ["single", "all"])
async def test_the_sales_add_up_to_the_figures(merchant: RunningService, mode: str) -> None:
    body = ALL_LOCATIONS | {"locationMode": mode}
    rows = await table(merchant, **body)
    summary = (await merchant.post(SUMMARY, json.dumps(body))).json()["current"]["currencies"]
    counts: Counter[str] = Counter()
    cents: Counter[str] = Counter()
    for row in rows:
        counts[row["currency"]] += 1
        cents[row["currency"]] += round(100 * float(row["total"]))
    expected = {currency["currency"]: currency["figures"] for currency in summary}
    assert counts == {name: figures["saleCount"] for name, figures in expected.items()}
    assert cents == {name: figures["saleCents"] for name, figures in expected.items()}
    assert len({row["locationId"] for row in rows}) == (1 if mode == "single" else 4)


async def test_a_row_has_names_decimals_and_local_time(merchant: RunningService) -> None:
    row, *_ = await table(merchant, locationId="loc-0004", period="last7")
    assert row["location"] == "Thamel Tea House"
    assert row["pointOfSale"] in {"Till 1", "Till 2"}
    assert row["pointOfSaleId"].startswith("pos-0004-")
    assert row["employeeId"].startswith("emp-0004-")
    assert row["employee"].isalpha()
    assert row["total"][-3] == "."
    offset = datetime.fromisoformat(row["initiatedAt"]).utcoffset()
    assert offset == timedelta(hours=5, minutes=45)


async def test_an_unknown_location_is_refused(merchant: RunningService) -> None:
    reply = await merchant.post(PATH, json.dumps({"locationId": "loc-none"}))
    assert reply.status_code == 404


def test_too_many_sales_are_refused(
    sales_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sales_table, "SALES_MAX", 20)
    caller = Caller(uuid.uuid4(), ORGANIZATION, can_write=False)
    query = validate(ALL_LOCATIONS, FiguresQuery)

    def work(session: Session) -> str:
        return sales_table.sales_table(RequestContext(session, caller, NOW, Settings()), query)

    with pytest.raises(Refusal) as refused:
        sales_database.read(work)
    assert refused.value.errors == {
        "period": ("has more than 20 sales. Choose a shorter period or one location",)
    }
