"""Measures dashboards over 5,000,000 sales of 50 locations on SQLite: `make bench-figures`.

Each dashboard is timed inside the service, from the transaction to the JSON, without HTTP. Its sums
are compared with the sums of one SQL statement over the raw rows. The run takes some ten minutes.
It writes 4 GB of temporary files and deletes them.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from controlplane.server import set_up_garbage_collection
from controlplane.storage.database import Database
from tests.bench.figures.load import Undo, load_base, rebuild_rollups, repeat
from tests.bench.figures.measure import (
    dashboard,
    dashboard_requests,
    percentile_95,
    query_sqlite,
    sale_and_rollups_ms,
    times_ms,
    windows_of,
)
from tests.bench.figures.raw import copy_to_duckdb, query_duckdb, statement, sums, totals_of_reply

ROLLUPS_GOAL_MS = 0.3
REBUILD_GOAL_S = 180
SALES = 500
"""Number of sales that are written one by one, to measure the time that one sale takes."""


def main() -> int:
    options = _options()
    set_up_garbage_collection()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "service.db"
        return _measure(file, options)


def _measure(file: Path, options: argparse.Namespace) -> int:
    began_s = time.monotonic()
    database = Database(str(file))
    base = load_base(database, options.locations, options.sales, options.repetitions)
    database.close()
    repeat(file, options.repetitions)
    _log(f"{base * options.repetitions} sales", began_s)
    database = Database(str(file))
    began_s, worked_s = time.monotonic(), time.process_time()
    database.write(rebuild_rollups)
    took_s, worked_s = time.monotonic() - began_s, time.process_time() - worked_s
    print(
        f"rollups rebuilt: {took_s:.0f} s, processor time {worked_s:.0f} s, goal"
        f" {REBUILD_GOAL_S} s; {_size_gb(file):.1f} GB",
        flush=True,
    )
    failures = int(took_s > REBUILD_GOAL_S)
    failures += _measure_dashboards(database, file, options.calls)
    failures += _measure_sales(database)
    database.close()
    return int(failures > 0)


def _measure_dashboards(database: Database, file: Path, calls: int) -> int:
    duck = copy_to_duckdb(file, file.parent)
    print(
        f"load {os.getloadavg()[0]:.1f}; ms         median   95 %   processor, 95 %   goal"
        "   SQLite raw  DuckDB    bytes"
    )
    failures = 0
    for request in dashboard_requests():
        reply = dashboard(database, request.body)
        dashboard_reply = json.loads(reply)
        windows = windows_of(file, dashboard_reply)
        totals = totals_of_reply(dashboard_reply["financial"]["current"]["currencies"])
        assert totals == sums(query_sqlite(file, windows)), request.name
        assert totals == sums(query_duckdb(duck, statement(windows))), request.name
        times, worked = times_ms(partial(dashboard, database, request.body), calls)
        sqlite_ms = statistics.median(times_ms(partial(query_sqlite, file, windows), 3)[0])
        query = statement(windows)
        duckdb_ms = statistics.median(times_ms(partial(query_duckdb, duck, query), 3)[0])
        slow = percentile_95(times)
        failures += slow > request.goal_ms
        print(
            f"{request.name:22} {statistics.median(times):8.1f} {slow:6.1f}"
            f" {percentile_95(worked):17.1f} {request.goal_ms:6}"
            f" {sqlite_ms:12.1f} {duckdb_ms:7.1f} {len(reply):8}",
            flush=True,
        )
    duck.close()
    return failures


def _measure_sales(database: Database) -> int:
    timings: list[tuple[float, float]] = []

    def work(session: object) -> None:
        timings.append(sale_and_rollups_ms(session, SALES))  # type: ignore[arg-type]
        raise Undo

    with suppress(Undo):
        database.write(work)
    sale_ms, rollups_ms = timings[0]
    print(
        f"a sale: processor time {sale_ms:.2f} ms, of which its rollups take {rollups_ms:.2f} ms,"
        f" goal {ROLLUPS_GOAL_MS} ms"
    )
    return int(rollups_ms > ROLLUPS_GOAL_MS)


def _log(text: str, began_s: float) -> None:
    took_s, worked_s = time.monotonic() - began_s, time.process_time()
    print(f"{text} in {took_s:.0f} s, processor time {worked_s:.0f} s", flush=True)


def _size_gb(file: Path) -> float:
    return file.stat().st_size / 1e9


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sales", type=int, default=5_000_000)
    parser.add_argument("--locations", type=int, default=50)
    parser.add_argument(
        "--repetitions", type=int, default=26, help="number of two-week periods with the same sales"
    )
    parser.add_argument("--calls", type=int, default=40, help="calls of each dashboard")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
