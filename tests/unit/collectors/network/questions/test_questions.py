import asyncio
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field

import pytest

from collectors.contract import Facts
from collectors.network.discoveries import Discoveries, OpenPort, Queues
from collectors.network.observations import Evidence
from collectors.network.questions import questions
from collectors.network.questions.questions import (
    ALLOWED,
    FAILURES_MAX,
    PORTS_AT_ONCE,
    PORTS_MAX,
    QUESTION_TIME_S,
    Question,
    enrich,
)
from collectors.shared.background import in_background

# SSH, Telnet, SMB, and the ports at which printers accept raw data or payment terminals listen.
FORBIDDEN_PORTS = (22, 23, 445, 515, 6101, 8443, *range(9100, 9117), 10009, 12000, 33333)


@dataclass
class FakeRun:
    """Records progress with totals. The run is cancelled only if ``cancelled`` is set."""

    cancelled: bool = False
    steps: list[tuple[str, int, int | None]] = field(default_factory=list)

    def progress(self, step: str, done: int, total: int | None = None) -> None:
        self.steps.append((step, done, total))

    def checkpoint(self, facts: Facts) -> None: ...

    def on_cancel(self, wake: Callable[[], None]) -> None: ...


@dataclass
class FakeHosts:
    """Hosts that answer each query immediately. Records the queries, and how many run concurrently.

    ``at_once`` counts the running queries of each address. ``most_at_once`` is its largest value so
    far. Each query adds two entries to ``queues``: the announced queues of its port, and those that
    this machine prints to.
    """

    queries: list[tuple[str, int, Question]] = field(default_factory=list)
    at_once: dict[str, int] = field(default_factory=dict)
    most_at_once: int = 0
    queues: list[tuple[str, ...]] = field(default_factory=list)
    query_received: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    async def query(self, port: OpenPort, question: Question) -> tuple[Evidence, ...]:
        self.queries.append((port.address, port.port, question))
        self.queues += [port.queues.announced, port.queues.own]
        self.query_received.release()
        self.at_once[port.address] = self.at_once.get(port.address, 0) + 1
        self.most_at_once = max(self.most_at_once, self.at_once[port.address])
        await asyncio.sleep(0)
        self.at_once[port.address] -= 1
        return (Evidence(port.address, port.port, title="x"),)


def deadline() -> float:
    """Return a deadline in 60 s, which no test reaches."""
    return time.monotonic() + 60


def discoveries_of(ports: Sequence[tuple[str, int]], contacted_s: float = 0.0) -> Discoveries:
    """Return the discoveries of a scan that has ended."""
    discoveries = Discoveries()
    for address, port in ports:
        discoveries.add_port(address, port, contacted_s)
    discoveries.set_queues({})
    discoveries.is_complete = True
    return discoveries


@pytest.mark.medium
def test_only_allowed_ports_are_queried():
    hosts = FakeHosts()
    every_port = discoveries_of([("10.0.0.9", port) for port in range(1, 65536)])
    result = enrich(every_port, (), deadline(), FakeRun(), query=hosts.query)
    assert {port for _, port, _ in hosts.queries} == {80, 443, 631, 8008, 8043, 8080}
    assert len(hosts.queries) == len(result.evidence) == 6


def test_raw_print_ports_and_ports_of_payment_terminals_are_not_queried():
    assert not set(FORBIDDEN_PORTS) & set(ALLOWED)
    assert all(ALLOWED.get(port) is None for port in FORBIDDEN_PORTS)
    assert [ALLOWED.get(port) for port in (631, 80, 443)] == ["ipp", "web", "web-tls"]


def test_queries_per_host_are_bounded_and_start_with_printers():
    hosts = FakeHosts()
    ports = discoveries_of([("10.0.0.9", port) for port in ALLOWED][::-1])
    enrich(ports, (), deadline(), FakeRun(), query=hosts.query)
    assert hosts.most_at_once <= PORTS_AT_ONCE
    assert hosts.queries[0] == ("10.0.0.9", 631, "ipp")


def test_silent_host_is_not_queried_again(monkeypatch: pytest.MonkeyPatch):
    for question in tuple(QUESTION_TIME_S):
        monkeypatch.setitem(QUESTION_TIME_S, question, 0.05)
    queried_ports: list[int] = []

    async def silent(port: OpenPort, question: Question) -> tuple[Evidence, ...]:
        queried_ports.append(port.port)
        await asyncio.Event().wait()
        return ()

    run = FakeRun()
    enrichment = enrich(
        discoveries_of([("10.0.0.9", port) for port in ALLOWED]), (), deadline(), run, query=silent
    )
    assert queried_ports == list(ALLOWED)[:PORTS_AT_ONCE]
    assert enrichment.evidence == enrichment.limitations == enrichment.failures == ()
    assert run.steps[-1] == ("enrichment", 6, 6)


def test_ports_whose_query_is_unfinished_at_the_deadline_are_counted():
    async def slow(port: OpenPort, question: Question) -> tuple[Evidence, ...]:
        await asyncio.Event().wait()
        return ()

    ports = discoveries_of([(f"10.0.0.{number}", 80) for number in range(10)])
    enrichment = enrich(ports, (), time.monotonic() + 0.1, FakeRun(), query=slow)
    assert enrichment.limitations == ("open ports not queried, because the time was up: 10",)


def test_a_cancelled_run_ends_at_once():
    hosts, unfinished_scan = FakeHosts(), Discoveries()
    run = FakeRun(cancelled=True)
    in_an_hour = time.monotonic() + 3600
    future = in_background(lambda: enrich(unfinished_scan, (), in_an_hour, run, query=hosts.query))
    assert wait([future], timeout=60).done
    future.result()


def test_ports_beyond_the_limit_are_counted():
    hosts = FakeHosts()
    ports = discoveries_of([(f"10.0.{n // 250}.{n % 250 + 1}", 80) for n in range(PORTS_MAX + 5)])
    enrichment = enrich(ports, (), deadline(), FakeRun(), query=hosts.query)
    assert len(enrichment.evidence) == PORTS_MAX
    assert enrichment.limitations == ("open ports not queried, because there are too many: 5",)


def test_reported_failures_are_bounded_and_all_other_queries_continue():
    async def broken(port: OpenPort, question: Question) -> tuple[Evidence, ...]:
        if port.address != "10.0.0.1":
            raise ZeroDivisionError("a bug")
        return (Evidence(port.address, port.port),)

    ports = discoveries_of([(f"10.0.0.{number}", 80) for number in range(1, 30)])
    enrichment = enrich(ports, (), deadline(), FakeRun(), query=broken)
    assert len(enrichment.evidence) == 1
    assert len(enrichment.failures) == FAILURES_MAX
    assert enrichment.failures[0].step == "enrichment"
    assert "ZeroDivisionError" in enrichment.failures[0].reason


def test_without_an_interface_no_name_is_queried():
    discoveries = Discoveries()
    discoveries.add_host("127.0.0.9")
    discoveries.is_complete = True
    enrichment = enrich(discoveries, (), deadline(), FakeRun())
    assert enrichment.hostnames == {}


def test_port_is_queried_as_soon_as_it_is_discovered():
    hosts = FakeHosts()
    discoveries = Discoveries()
    future = in_background(
        lambda: enrich(discoveries, (), deadline(), FakeRun(), query=hosts.query)
    )
    for number in range(1, 4):
        discoveries.add_port(f"10.0.0.{number}", 80, 0.0)
        assert hosts.query_received.acquire(timeout=60)
    discoveries.is_complete = True
    assert wait([future], timeout=60).done
    assert len(future.result().evidence) == 3


def test_printer_is_queried_as_soon_as_its_queues_are_known():
    hosts = FakeHosts()
    discoveries = Discoveries()
    future = in_background(
        lambda: enrich(discoveries, (), deadline(), FakeRun(), query=hosts.query)
    )
    discoveries.add_port("10.0.0.9", 631, 0.0)
    discoveries.add_port("10.0.0.9", 80, 0.0)
    assert hosts.query_received.acquire(timeout=60)
    discoveries.set_queues({("10.0.0.9", 631): Queues(("ipp/print",), ("printers/bar",))})
    discoveries.is_complete = True
    assert wait([future], timeout=60).done
    assert [port for _, port, _ in hosts.queries] == [80, 631]
    assert hosts.queues == [(), (), ("ipp/print",), ("printers/bar",)]


def test_a_printer_is_queried_after_a_pause_that_follows_the_scan(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(questions, "PRINTER_PAUSE_S", 0.4)
    queried_s: dict[int, float] = {}

    async def query(port: OpenPort, question: Question) -> tuple[Evidence, ...]:
        queried_s[port.port] = time.monotonic()
        return ()

    scanned_s = time.monotonic()
    ports = discoveries_of([("10.0.0.9", 80), ("10.0.0.9", 631)], scanned_s)
    enrich(ports, (), deadline(), FakeRun(), query=query)
    assert queried_s[631] - scanned_s >= 0.4
    assert queried_s[80] < queried_s[631]


def test_silent_page_does_not_block_the_printer_query(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(QUESTION_TIME_S, "web", 0.05)
    queries: list[int] = []
    is_given_up = threading.Event()

    async def silent(port: OpenPort, question: Question) -> tuple[Evidence, ...]:
        queries.append(port.port)
        if question != "ipp":
            try:
                await asyncio.Event().wait()
            finally:
                is_given_up.set()
        return ()

    discoveries = Discoveries()
    future = in_background(lambda: enrich(discoveries, (), deadline(), FakeRun(), query=silent))
    discoveries.add_port("10.0.0.9", 80, 0.0)
    discoveries.add_port("10.0.0.9", 631, 0.0)
    assert is_given_up.wait(60)
    assert not wait([future], timeout=0.2).done
    discoveries.set_queues({})
    discoveries.add_port("10.0.0.9", 8080, 0.0)
    discoveries.is_complete = True
    assert wait([future], timeout=60).done
    future.result()
    assert queries == [80, 631]


def test_a_printer_whose_queues_stay_unknown_counts_as_not_queried():
    discoveries = Discoveries()
    discoveries.add_port("10.0.0.9", 631, 0.0)
    enrichment = enrich(discoveries, (), time.monotonic() + 0.1, FakeRun(), query=FakeHosts().query)
    assert enrichment.limitations == ("open ports not queried, because the time was up: 1",)


def test_printer_is_queried_at_once_over_the_connection_of_the_scan(
    monkeypatch: pytest.MonkeyPatch,
):
    """Queries of the printer's web pages use up the limit of concurrent queries to one host. The
    limit does not apply to a port with an open connection.
    """
    monkeypatch.setitem(QUESTION_TIME_S, "web", 1000.0)
    began, is_queried = threading.Semaphore(0), threading.Event()
    queries: list[tuple[int, socket.socket | None]] = []

    async def query(port: OpenPort, question: Question) -> tuple[Evidence, ...]:
        queries.append((port.port, port.connection))
        began.release()
        if question == "ipp":
            is_queried.set()
        await asyncio.to_thread(is_queried.wait, 60)
        return ()

    discoveries = Discoveries()
    discoveries.set_queues({})
    future = in_background(lambda: enrich(discoveries, (), deadline(), FakeRun(), query=query))
    for port in (80, 8080):
        discoveries.add_port("10.0.0.9", port, 0.0)
        assert began.acquire(timeout=60)
    with socket.socket() as connection:
        discoveries.add_port("10.0.0.9", 631, time.monotonic() + 1000, connection)
        assert is_queried.wait(60)
        discoveries.is_complete = True
        assert wait([future], timeout=60).done
        future.result()
        assert queries == [(80, None), (8080, None), (631, connection)]
        assert connection.fileno() == -1


def test_connections_of_unqueried_ports_are_closed(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(questions, "PORTS_MAX", 2)
    began = threading.Semaphore(0)

    async def silent(port: OpenPort, question: Question) -> tuple[Evidence, ...]:
        began.release()
        await asyncio.Event().wait()
        return ()

    run, discoveries = FakeRun(), Discoveries()
    discoveries.set_queues({})
    future = in_background(lambda: enrich(discoveries, (), deadline(), run, query=silent))
    discoveries.add_port("10.0.0.9", 80, 0.0)
    assert began.acquire(timeout=60)
    connections = [socket.socket() for _ in range(3)]
    for number, connection in enumerate(connections):
        discoveries.add_port(f"10.0.0.{number}", 631, 0.0, connection)
    assert began.acquire(timeout=60)
    run.cancelled = True
    assert wait([future], timeout=60).done
    assert future.result().limitations == (
        "open ports not queried, because there are too many: 1",
        "open ports not queried, because the time was up: 3",
    )
    assert [connection.fileno() for connection in connections] == [-1, -1, -1]
