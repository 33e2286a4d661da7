"""Tests that the sums of the dashboard equal those of one SQL statement, in SQLite and in DuckDB.

This is the short form of `make bench-figures`.
"""

import json
from pathlib import Path

import pytest

from controlplane.storage.database import Database
from tests import sizes
from tests.bench.figures.load import load_base, rebuild_rollups, repeat
from tests.bench.figures.measure import dashboard, dashboard_requests, query_sqlite, windows_of
from tests.bench.figures.raw import copy_to_duckdb, query_duckdb, statement, sums, totals_of_reply

LOCATIONS, REPETITIONS = 12, 12
SALES = sizes.amount(medium=25_000, large=50_000)


@pytest.mark.medium
def test_sums_of_dashboards_equal_the_sums_of_raw_sql(tmp_path: Path) -> None:
    file = tmp_path / "service.db"
    database = Database(str(file))
    sales = load_base(database, LOCATIONS, SALES, REPETITIONS) * REPETITIONS
    database.close()
    assert sales > SALES * 0.9
    repeat(file, REPETITIONS)
    database = Database(str(file))
    database.write(rebuild_rollups)
    duck = copy_to_duckdb(file, tmp_path)
    sale_counts = set()
    for request in dashboard_requests():
        reply = json.loads(dashboard(database, request.body))
        windows = windows_of(file, reply)
        totals = totals_of_reply(reply["financial"]["current"]["currencies"])
        assert totals == sums(query_sqlite(file, windows)), request.name
        assert totals == sums(query_duckdb(duck, statement(windows))), request.name
        sale_counts.add(totals["AED"]["saleCount"])
    # Each request selects a different number of sales, so no comparison repeats another one.
    assert len(sale_counts) == len(list(dashboard_requests()))
    duck.close()
    database.close()
