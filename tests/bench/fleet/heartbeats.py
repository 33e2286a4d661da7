"""Measures the heartbeats per second, the cost of one heartbeat, and how both depend on the size of
the fleet.
"""

import asyncio
import statistics
import time
import uuid
from collections.abc import Iterator

from tests.bench.fleet.databases import temporary_database, write_fleet
from tests.bench.fleet.fleet import DEVICES_A_KEY, Member
from tests.bench.fleet.load import exchange, heartbeat
from tests.bench.fleet.service import Service, bare, service

CONNECTIONS = 64
WARM_UP = 10
"""Before the measurement, one tenth of the heartbeats is sent."""


def measure_heartbeats(databases: list[str], sizes: list[int], count: int) -> Iterator[str]:
    """Measure the framework alone with each HTTP parser. Then measure the service with each
    database and fleet size. Yield a line for each measurement.
    """
    unknown = Member(uuid.uuid4(), uuid.uuid4(), "-", "-")
    for kind in ("h11", "httptools"):
        with bare(kind) as started:
            yield f"{'framework alone, ' + kind:<28} {_measure(started, [unknown], count)}"
    for database in databases:
        for size in sizes:
            with temporary_database(database) as url:
                fleet = write_fleet(url, size)
                with service(url) as started:
                    yield f"{f'{database}, {size:,} devices':<28} {_measure(started, fleet, count)}"


def _measure(started: Service, fleet: list[Member], count: int) -> str:
    # The step is a prime number, so that consecutive heartbeats come from devices that are far
    # apart in the table.
    requests = [heartbeat(fleet[number * 7919 % len(fleet)]) for number in range(count)]
    # The warm-up uses each API key, because a service that has run for a while has already verified
    # all of them.
    warm_up = [heartbeat(member) for member in fleet[::DEVICES_A_KEY]]
    asyncio.run(exchange(started.port, warm_up + requests[: count // WARM_UP], CONNECTIONS))
    cpu_s, began_s = started.cpu_s, time.perf_counter()
    tally = asyncio.run(exchange(started.port, requests, CONNECTIONS))
    took_s = time.perf_counter() - began_s
    cost_ms = 1000 * (started.cpu_s - cpu_s) / count
    p99_ms = 1000 * statistics.quantiles(tally.latencies_s, n=100)[98]
    p50_ms = 1000 * statistics.median(tally.latencies_s)
    return (
        f"{count / took_s:7,.0f}/s  {cost_ms:.3f} ms of CPU  p50 {p50_ms:.0f} ms  "
        f"p99 {p99_ms:.0f} ms  {tally.statuses}"
    )
