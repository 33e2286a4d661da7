"""Measures the cost of open command streams, and the time until a request reaches its device."""

import asyncio
import contextlib
import json
import statistics
import time
from collections.abc import Iterator

from tests.bench.fleet.databases import temporary_database, write_fleet
from tests.bench.fleet.fleet import Member
from tests.bench.fleet.load import create_request, open_streams, post
from tests.bench.fleet.service import Service, service

WITHIN_S = 20
"""Timeout for a request to reach its device."""
IDLE_S = 30
"""Seconds of the measurement. The service sends one or two keep-alives to each stream."""
KIB = 1024


def measure_idle_streams(databases: list[str], streams: int) -> Iterator[str]:
    """Yield a line for each database: the memory of one stream, and the processor time of 1,000
    idle streams.
    """
    for database in databases:
        with temporary_database(database) as url:
            fleet = write_fleet(url, streams)
            with service(url) as started:
                yield f"{f'{database}, {streams:,} streams':<28} {_idle_cost(started, fleet)}"


def _idle_cost(started: Service, fleet: list[Member]) -> str:
    async def measure() -> str:
        # For the first streams, the service imports modules. The memory of these modules is not
        # part of the memory of a stream.
        first = await open_streams([started.port], fleet[:10], _ignore)
        before_mib = started.rss_mib
        began_s = time.perf_counter()
        rest = await open_streams([started.port], fleet[10:], _ignore)
        opened_s = time.perf_counter() - began_s
        each_kib = (started.rss_mib - before_mib) * KIB / len(rest)
        cpu_s = started.cpu_s
        await asyncio.sleep(IDLE_S)
        percent = 100 * (started.cpu_s - cpu_s) / IDLE_S / (len(fleet) / 1000)
        lost = sum(listener.is_lost for listener in (*first, *rest))
        for listener in (*first, *rest):
            listener.transport.abort()
        return (
            f"{each_kib:.1f} KiB each  {percent:.2f} % of a core per 1,000  "
            f"all open after {opened_s:.1f} s  {lost} lost"
        )

    return asyncio.run(measure())


def measure_requests(databases: list[str], streams: int, requests: int) -> Iterator[str]:
    """Yield a line for each database: the time from createRequest until the device receives it.

    On PostgreSQL the streams and the requests are spread over two processes.
    """
    for database in databases:
        with temporary_database(database) as url, contextlib.ExitStack() as stack:
            fleet = write_fleet(url, streams)
            processes = 2 if database == "postgresql" else 1
            services = [stack.enter_context(service(url)) for _ in range(processes)]
            line = _request_times(services, fleet, requests)
            yield f"{f'{database}, {streams:,} streams':<28} {line}"


def _request_times(services: list[Service], fleet: list[Member], requests: int) -> str:
    arrivals: dict[tuple[int, str], float] = {}
    arrived = asyncio.Event()

    def on_data(number: int, data: bytes) -> None:
        for line in data.split(b"\n"):
            if line.startswith(b"id: "):
                arrivals[number, line[4:].decode()] = time.perf_counter()
                arrived.set()

    async def measure_ms(number: int, port: int) -> float:
        """Create a request, and return the time until the device's stream delivers it."""
        began_s = time.perf_counter()
        reply = json.loads(await post(port, create_request(fleet[number])))
        async with asyncio.timeout(WITHIN_S):
            while (number, reply["requestId"]) not in arrivals:
                arrived.clear()
                await arrived.wait()
        return 1000 * (arrivals[number, reply["requestId"]] - began_s)

    async def measure() -> str:
        ports = [each.port for each in services]
        listeners = await open_streams(ports, fleet, on_data)
        took = []
        for turn in range(requests):
            number = turn * 7919 % len(fleet)  # a prime: the devices come in a mixed order
            # With two services, half of the requests go to the service that does not have the
            # device's stream. The streams of consecutive turns are at alternating services, and
            # the port of the request changes only every second turn.
            port = ports[turn // 2 % len(ports)]
            took.append(await measure_ms(number, port))
        for listener in listeners:
            listener.transport.abort()
        p50, p99 = statistics.median(took), statistics.quantiles(took, n=100)[98]
        return f"{len(took)} requests arrived  p50 {p50:.1f} ms  p99 {p99:.1f} ms"

    return asyncio.run(measure())


def _ignore(number: int, data: bytes) -> None:
    """Ignore a keep-alive."""
