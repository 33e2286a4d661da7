import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from collectors.contract import Facts
from collectors.network.observations import Evidence, OpenPort
from collectors.network.questions.questions import (
    ALLOWED,
    FAILURES_MAX,
    PORTS_AT_ONCE,
    PORTS_MAX,
    QUESTION_TIME_S,
    Question,
    enrich,
    question_for,
)

PRINTS_OR_PAYS = (22, 23, 445, 515, 6101, 8443, *range(9100, 9117), 10009, 12000, 33333)


@dataclass
class FakeRun:
    cancelled: bool = False
    steps: list[tuple[str, int, int | None]] = field(default_factory=list)

    def progress(self, step: str, done: int, total: int | None = None) -> None:
        self.steps.append((step, done, total))

    def checkpoint(self, facts: Facts) -> None: ...

    def on_cancel(self, wake: Callable[[], None]) -> None: ...


@dataclass
class FakeHosts:
    """Answers each question at once, and writes down which were asked how many at a time."""

    asked: list[tuple[str, int, Question]] = field(default_factory=list)
    at_once: dict[str, int] = field(default_factory=dict)
    most_at_once: int = 0

    async def ask(self, port: OpenPort, question: Question) -> tuple[Evidence, ...]:
        self.asked.append((port.address, port.port, question))
        self.at_once[port.address] = self.at_once.get(port.address, 0) + 1
        self.most_at_once = max(self.most_at_once, self.at_once[port.address])
        await asyncio.sleep(0)
        self.at_once[port.address] -= 1
        return (Evidence(port.address, port.port, title="x"),)


def soon() -> float:
    return time.monotonic() + 10


def test_of_all_ports_only_the_allowed_are_asked():
    hosts = FakeHosts()
    every_port = [OpenPort("10.0.0.9", port) for port in range(1, 65536)]
    found = enrich(every_port, soon(), FakeRun(), ask=hosts.ask)
    assert {port for _, port, _ in hosts.asked} == {80, 443, 631, 8008, 8043, 8080}
    assert len(hosts.asked) == len(found.evidence) == 6


def test_what_prints_or_pays_is_not_allowed():
    assert not set(PRINTS_OR_PAYS) & set(ALLOWED)
    assert all(question_for(port) is None for port in PRINTS_OR_PAYS)
    assert [question_for(port) for port in (631, 80, 443)] == ["ipp", "web", "web-tls"]


def test_a_host_is_asked_gently_and_printers_first():
    hosts = FakeHosts()
    enrich([OpenPort("10.0.0.9", port) for port in ALLOWED][::-1], soon(), FakeRun(), ask=hosts.ask)
    assert hosts.most_at_once <= PORTS_AT_ONCE
    assert hosts.asked[0] == ("10.0.0.9", 631, "ipp")


def test_a_host_that_keeps_silent_is_not_asked_on(monkeypatch: pytest.MonkeyPatch):
    for question in tuple(QUESTION_TIME_S):
        monkeypatch.setitem(QUESTION_TIME_S, question, 0.05)
    asked: list[int] = []

    async def silent(port: OpenPort, question: Question) -> tuple[Evidence, ...]:
        asked.append(port.port)
        await asyncio.Event().wait()
        return ()

    run = FakeRun()
    found = enrich([OpenPort("10.0.0.9", port) for port in ALLOWED], soon(), run, ask=silent)
    assert asked == list(ALLOWED)[:PORTS_AT_ONCE]
    assert found.evidence == found.limitations == found.failures == ()
    assert run.steps[-1] == ("enrichment", 6, 6)


def test_the_deadline_ends_it_and_what_was_not_asked_is_counted():
    async def slow(port: OpenPort, question: Question) -> tuple[Evidence, ...]:
        await asyncio.Event().wait()
        return ()

    ports = [OpenPort(f"10.0.0.{number}", 80) for number in range(10)]
    started = time.monotonic()
    found = enrich(ports, started + 0.1, FakeRun(), ask=slow)
    assert time.monotonic() - started < 1
    assert found.limitations == ("10 ports were not asked what they are: the time was up",)


def test_a_cancelled_run_ends_at_once():
    hosts = FakeHosts()
    run = FakeRun(cancelled=True)
    started = time.monotonic()
    enrich([OpenPort("10.0.0.9", 80)], soon(), run, ask=hosts.ask)
    assert time.monotonic() - started < 0.5


def test_too_many_ports_are_counted():
    hosts = FakeHosts()
    ports = [OpenPort(f"10.0.{n // 250}.{n % 250 + 1}", 80) for n in range(PORTS_MAX + 5)]
    found = enrich(ports, soon(), FakeRun(), ask=hosts.ask)
    assert len(found.evidence) == PORTS_MAX
    assert found.limitations == ("5 ports were not asked what they are: too many",)


def test_what_breaks_is_told_and_the_rest_goes_on():
    async def broken(port: OpenPort, question: Question) -> tuple[Evidence, ...]:
        if port.address != "10.0.0.1":
            raise ZeroDivisionError("a bug")
        return (Evidence(port.address, port.port),)

    ports = [OpenPort(f"10.0.0.{number}", 80) for number in range(1, 30)]
    found = enrich(ports, soon(), FakeRun(), ask=broken)
    assert len(found.evidence) == 1
    assert len(found.failures) == FAILURES_MAX
    assert found.failures[0].step == "enrichment"
    assert "ZeroDivisionError" in found.failures[0].reason


def test_no_name_is_asked_for_when_only_this_device_is_meant():
    found = enrich([], soon(), FakeRun(), True, nameless=("192.168.1.1",))
    assert found.hostnames == ()
