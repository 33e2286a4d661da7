"""Tests of the order in which passwords are verified while many users and strangers sign in.

A network is known for a user who has a session that began in this network. Calls from known
networks are first.
"""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from controlplane.accounts.passwords import NETWORK_CALLS_MAX, WAITING_MAX, Passwords
from controlplane.accounts.throttle import FAILURES_MAX
from controlplane.operation.errors import Refusal
from controlplane.operation.niceness import NICENESS
from controlplane.storage.database import Database
from tests.unit.controlplane.accounts.people import (
    MEMORY_KIB,
    PASSES,
    PASSWORD,
    Browser,
    make_user,
    proxied_service,
)
from tests.unit.controlplane.running_service import RunningService

STRANGERS = 80
NICENESS_MAX = 19


@pytest.fixture
def passwords() -> Iterator[Passwords]:
    passwords = Passwords(MEMORY_KIB, PASSES)
    yield passwords
    passwords.close()


@asynccontextmanager
async def busy(passwords: Passwords) -> AsyncIterator[None]:
    """Keep the password thread busy until the end of the context, so that all later calls wait."""
    end = threading.Event()
    first = asyncio.ensure_future(passwords._run(end.wait, "192.0.2.255", is_known=True))
    await asyncio.sleep(0)
    try:
        yield
    finally:
        end.set()
        await first


class Queue:
    """Calls that wait for the password thread, and the order in which they ran."""

    def __init__(self, passwords: Passwords) -> None:
        self._passwords = passwords
        self.order: list[str] = []
        self.results: list[asyncio.Future[None]] = []

    async def add(self, name: str, network: str, *, is_known: bool = False) -> None:
        call = self._passwords._run(lambda: self.order.append(name), network, is_known=is_known)
        self.results.append(asyncio.ensure_future(call))
        await asyncio.sleep(0)

    async def refusals(self) -> list[Refusal | None]:
        """Return the refusal of each call; None for a call that ran."""
        results = await asyncio.gather(*self.results, return_exceptions=True)
        return [each if isinstance(each, Refusal) else None for each in results]


async def test_known_networks_are_first_and_other_networks_take_turns(passwords: Passwords) -> None:
    queue = Queue(passwords)
    async with busy(passwords):
        for name in ("one 1", "one 2", "one 3"):
            await queue.add(name, "192.0.2.1")
        await queue.add("two 1", "192.0.2.2")
        await queue.add("known 1", "192.0.2.3", is_known=True)
        await queue.add("two 2", "192.0.2.2")
    assert await queue.refusals() == [None] * 6
    assert queue.order == ["known 1", "one 1", "two 1", "one 2", "two 2", "one 3"]


async def test_the_number_of_waiting_calls_of_one_network_is_limited(passwords: Passwords) -> None:
    for _ in range(2):
        queue = Queue(passwords)
        async with busy(passwords):
            for at in range(NETWORK_CALLS_MAX + 2):
                await queue.add(str(at), "192.0.2.1")
            await queue.add("other", "192.0.2.2")
        refused = await queue.refusals()
        assert [each is None for each in refused] == [True] * NETWORK_CALLS_MAX + [False] * 2 + [
            True
        ]
        assert {each.status for each in refused if each} == {503}


async def test_a_cancelled_call_frees_its_position_in_a_full_queue(passwords: Passwords) -> None:
    queue = Queue(passwords)
    async with busy(passwords):
        for at in range(WAITING_MAX):
            await queue.add("stranger", f"192.0.2.{at}")
        last = queue.results[-1]
        # The new call starts after the cancellation, and before the cancelled call leaves the
        # queue.
        asyncio.get_running_loop().call_soon(last.cancel)
        await queue.add("new", "203.0.113.1", is_known=True)
    await asyncio.gather(*(each for each in queue.results if each is not last))
    assert last.cancelled()
    assert not passwords._calls, "a call is still counted for its network"
    assert queue.order == ["new"] + ["stranger"] * (WAITING_MAX - 1)


async def test_a_full_queue_refuses_the_call_that_would_run_last(passwords: Passwords) -> None:
    queue = Queue(passwords)
    async with busy(passwords):
        await queue.add("first of its network", "198.51.100.0")
        await queue.add("second of its network", "198.51.100.0")
        for at in range(WAITING_MAX - 2):
            await queue.add("stranger", f"192.0.2.{at}")
        await queue.add("new network", "203.0.113.1")
        await queue.add("known", "203.0.113.2", is_known=True)
        await queue.add("too late", "203.0.113.3")
    refused = [at for at, each in enumerate(await queue.refusals()) if each is not None]
    # The refusal of the second call of 198.51.100.0 made room for the new network. Then the refusal
    # of the new network made room for the known network.
    assert refused == [1, WAITING_MAX, WAITING_MAX + 2]
    assert queue.order[0] == "known"
    assert "too late" not in queue.order


async def test_a_cancelled_call_leaves_the_queue(passwords: Passwords) -> None:
    queue = Queue(passwords)
    async with busy(passwords):
        for at in range(NETWORK_CALLS_MAX):
            await queue.add(str(at), "192.0.2.1")
        queue.results[0].cancel()
        await asyncio.gather(queue.results.pop(0), return_exceptions=True)
        await queue.add("next", "192.0.2.1")
    assert set(await queue.refusals()) == {None}
    assert queue.order == [*map(str, range(1, NETWORK_CALLS_MAX)), "next"]


async def test_an_error_in_the_thread_reaches_only_the_caller_that_caused_the_error(
    passwords: Passwords,
) -> None:
    def fail() -> None:
        raise MemoryError

    async with busy(passwords):
        failing = asyncio.ensure_future(passwords._run(fail, "192.0.2.1", is_known=False))
        queue = Queue(passwords)
        await queue.add("next", "192.0.2.2")
    with pytest.raises(MemoryError):
        await failing
    assert await queue.refusals() == [None]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a priority for each thread")
async def test_passwords_are_hashed_in_one_thread_with_a_lower_priority(
    passwords: Passwords,
) -> None:
    def priority() -> tuple[int, int]:
        return threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, 0)

    calls = [passwords._run(priority, f"192.0.2.{n}", is_known=False) for n in range(8)]
    results = set(await asyncio.gather(*calls))
    assert len(results) == 1
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    assert results.pop()[1] == min(usual + NICENESS, NICENESS_MAX)


class Arrivals:
    """Counts the calls that reach the password queue of a service, whether they wait or not.

    The call that `busy` makes is counted, too.
    """

    def __init__(self, service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
        self._count = asyncio.Semaphore(0)
        self._run = service.core.passwords._run
        monkeypatch.setattr(service.core.passwords, "_run", self._count_call)

    async def wait_for(self, count: int) -> None:
        for _ in range(count):
            await self._count.acquire()

    async def _count_call(self, *arguments: Any, **options: Any) -> Any:
        self._count.release()
        return await self._run(*arguments, **options)


@pytest.fixture
async def proxied(database: Database) -> AsyncIterator[RunningService]:
    async with proxied_service(database) as service:
        yield service


@pytest.fixture
async def arrivals(proxied: RunningService, monkeypatch: pytest.MonkeyPatch) -> Arrivals:
    return Arrivals(proxied, monkeypatch)


def start_sign_in(
    service: RunningService, network: str, email: str = "ada@example.com", password: str = PASSWORD
) -> "asyncio.Future[httpx2.Response]":
    call = Browser(service).sign_in(email, password, x_forwarded_for=network)
    return asyncio.ensure_future(call)


@pytest.mark.parametrize(
    "strangers", [STRANGERS, pytest.param(WAITING_MAX * 2, marks=pytest.mark.medium)]
)
async def test_strangers_do_not_keep_a_user_from_signing_in(
    proxied: RunningService, arrivals: Arrivals, strangers: int
) -> None:
    """Many networks try wrong passwords. A user signs in from a network in which the user
    already has a session.
    """
    make_user(proxied)
    assert (await start_sign_in(proxied, "2001:db8:1:2::1")).status_code == 200
    await arrivals.wait_for(1)
    async with busy(proxied.core.passwords):
        wrong = [
            start_sign_in(proxied, f"10.0.{n // 250}.{n % 250}", f"{n}@example.com", "not this one")
            for n in range(strangers)
        ]
        await arrivals.wait_for(strangers + 1)
        right = start_sign_in(proxied, "2001:db8:1:2::2")
        await arrivals.wait_for(1)
    assert (await right).status_code == 200
    statuses = [each.status_code for each in await asyncio.gather(*wrong)]
    assert set(statuses) <= {401, 503}
    assert statuses.count(503) == max(0, strangers + 1 - WAITING_MAX)


async def test_a_session_of_another_user_does_not_make_a_network_known(
    proxied: RunningService, arrivals: Arrivals
) -> None:
    """Otherwise, an attacker with one account would be first in the queue for every account."""
    make_user(proxied)
    make_user(proxied, "eve@example.com")
    await start_sign_in(proxied, "192.0.2.1", "eve@example.com")
    await start_sign_in(proxied, "192.0.2.2")
    await arrivals.wait_for(2)
    cases = {
        ("192.0.2.1", "ada@example.com"): False,
        ("192.0.2.1", "nobody@example.com"): False,
        ("192.0.2.1", "eve@example.com"): True,
        ("192.0.2.2", "ada@example.com"): True,
    }
    async with busy(proxied.core.passwords):
        calls = [start_sign_in(proxied, *each) for each in cases]
        await arrivals.wait_for(len(cases) + 1)
        waiting = proxied.core.passwords._waiting
        assert sorted(each.is_known for each in waiting) == sorted(cases.values())
        assert [each.is_known for each in waiting] == [True, True, False, False]
        assert {each.network for each in waiting[:2]} == {"192.0.2.1", "192.0.2.2"}
    assert [each.status_code for each in await asyncio.gather(*calls)] == [200, 401, 200, 200]


async def test_a_flood_from_one_network_does_not_block_other_networks(
    proxied: RunningService, arrivals: Arrivals
) -> None:
    make_user(proxied)
    async with busy(proxied.core.passwords):
        flood = [
            start_sign_in(proxied, "192.0.2.1", f"{n}@example.com") for n in range(FAILURES_MAX + 5)
        ]
        await arrivals.wait_for(FAILURES_MAX + 1)
        right = start_sign_in(proxied, "192.0.2.2")
        await arrivals.wait_for(1)
        waiting = [each.network for each in proxied.core.passwords._waiting]
        # The call of the other network is the next one after the first call of the flood.
        assert waiting[:2] == ["192.0.2.1", "192.0.2.2"]
    assert (await right).status_code == 200
    statuses = [each.status_code for each in await asyncio.gather(*flood)]
    assert sorted(statuses) == [401] * FAILURES_MAX + [429] * 5
