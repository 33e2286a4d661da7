"""Functions that measure dashboards, the same sums in raw SQL, and the rollups of a sale."""

import json
import sqlite3
import statistics
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from sqlalchemy.orm import Session

from agent.wire.codec import encode
from controlplane.analytics import routes
from controlplane.analytics.registry import OPERATIONS
from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.sandbox.plan import ORGANIZATION
from controlplane.settings import Settings
from controlplane.storage.database import Database
from controlplane.storage.merchant.columns import microseconds
from tests.bench.figures.load import NOW
from tests.bench.figures.raw import Windows, statement

CALLER: Final = Caller(uuid.uuid4(), ORGANIZATION, can_write=False)
CUSTOM: Final = {
    "period": "custom",
    "from": (NOW.date() - timedelta(days=91)).isoformat(),
    "to": NOW.date().isoformat(),
}
PERIODS: Final[tuple[dict[str, str], ...]] = (
    {"period": "today"}, {"period": "last7"}, {"period": "thisMonth"}, CUSTOM,
)  # fmt: skip
GOALS_MS: Final = {"single": (30, 40, 60, 120), "all": (120, 250, 500, 1200)}
"""Goals in milliseconds, in the order of `PERIODS`: 95 of 100 calls must not take longer."""


@dataclass(frozen=True)
class DashboardRequest:
    mode: str
    body: dict[str, str]
    goal_ms: int

    @property
    def name(self) -> str:
        return f"{self.mode:6} {self.body['period']}"


def dashboard_requests() -> Iterator[DashboardRequest]:
    for mode, goals in GOALS_MS.items():
        for period, goal in zip(PERIODS, goals, strict=True):
            yield DashboardRequest(
                mode, {"locationId": "loc-0001", "locationMode": mode, **period}, goal
            )


def dashboard(database: Database, body: dict[str, str]) -> bytes:
    operation = OPERATIONS[routes.DASHBOARD]
    parsed = operation.parse(json.dumps(body).encode())
    return database.read(
        lambda session: encode(
            operation.run(RequestContext(session, CALLER, NOW, Settings()), parsed)
        )
    )


def times_ms(work: Callable[[], object], calls: int) -> tuple[list[float], list[float]]:
    """Return the durations and the processor times of the calls, in milliseconds. On a busy machine
    only the processor times are meaningful.
    """
    clock, processor = [], []
    for _ in range(calls):
        began_s, worked_s = time.perf_counter(), time.process_time()
        work()
        processor.append((time.process_time() - worked_s) * 1000)
        clock.append((time.perf_counter() - began_s) * 1000)
    return clock, processor


def percentile_95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20, method="inclusive")[-1]


def windows_of(file: Path, reply: dict[str, Any]) -> Windows:
    connection = sqlite3.connect(file)
    positions = dict(connection.execute("SELECT id, position FROM locations"))
    connection.close()
    return [
        (positions[window["locationId"]], _us(interval["startUtc"]), _us(interval["endUtc"]))
        for window in reply["windows"]
        for interval in window["intervals"]
    ]


def query_sqlite(file: Path, windows: Windows) -> list[Any]:
    connection = sqlite3.connect(file)
    rows = connection.execute(statement(windows)).fetchall()
    connection.close()
    return rows


def sale_and_rollups_ms(session: Session, sales: int) -> tuple[float, float]:
    """Return two medians of processor time, in milliseconds: the time to write a sale, and the part
    of this time that its rollups take.
    """
    from controlplane.merchant import writing
    from tests.bench.figures.sales import some_sales

    sales_ms, rollups_ms = [], []
    add_to_rollups = writing.add_to_rollups

    def timed(*arguments: Any) -> None:
        began_s = time.process_time()
        add_to_rollups(*arguments)
        rollups_ms.append((time.process_time() - began_s) * 1000)

    writing.add_to_rollups = timed
    try:
        for sale in some_sales(session, sales):
            began_s = time.process_time()
            writing.add_sale(session, sale, NOW)
            sales_ms.append((time.process_time() - began_s) * 1000)
    finally:
        writing.add_to_rollups = add_to_rollups
    return statistics.median(sales_ms), statistics.median(rollups_ms)


def _us(timestamp: str) -> int:
    return microseconds(datetime.fromisoformat(timestamp))
