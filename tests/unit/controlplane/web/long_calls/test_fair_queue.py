"""Tests of the queue of calls: its limits, and the rotation between organizations."""

import asyncio
from collections.abc import Iterable

import pytest

from controlplane.operation.errors import Refusal
from controlplane.operation.fairness import QUEUE_RETRY_S, FairQueue


class Calls:
    """Calls that wait for a turn. A call runs until the test ends it."""

    def __init__(self, queue: FairQueue) -> None:
        self.started: list[str] = []
        self._queue = queue
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def add(self, *names: str) -> None:
        """Add calls. The first letter of a name is the organization."""
        for name in names:
            self._ends[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._run(name))
            await asyncio.sleep(0)

    async def end(self, *names: str) -> None:
        for name in names:
            self._ends[name].set()
            await self._tasks[name]
            await run_ready_tasks()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        with pytest.raises(asyncio.CancelledError):
            await self._tasks[name]
        await run_ready_tasks()

    async def _run(self, name: str) -> None:
        async with self._queue.turn(name[0]):
            self.started.append(name)
            await self._ends[name].wait()


async def run_ready_tasks() -> None:
    """Let the event loop run the tasks that are ready."""
    for _ in range(5):
        await asyncio.sleep(0)


async def end_all(calls: Calls, first: Iterable[str]) -> list[str]:
    """End the calls in the order in which they started, until no call runs. Return this order.

    ``first`` are the first calls of this order. They may have ended already.
    """
    await calls.end(*first)
    index = len(list(first))
    while index < len(calls.started):
        await calls.end(calls.started[index])
        index += 1
    return calls.started


async def test_organizations_take_turns() -> None:
    calls = Calls(FairQueue(running_max=1, waiting_max=10))
    await calls.add("a1", "a2", "a3", "a4", "b1", "b2", "c1")
    assert calls.started == ["a1"]
    order = await end_all(calls, ["a1"])
    assert order == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]


async def test_one_organization_cannot_use_all_turns() -> None:
    calls = Calls(FairQueue(running_max=2, waiting_max=10))
    await calls.add("a1", "a2", "a3", "b1", "c1")
    assert calls.started == ["a1", "b1"]
    await calls.end("b1")
    assert calls.started == ["a1", "b1", "c1"]
    await calls.end("c1")
    assert calls.started == ["a1", "b1", "c1"]
    await calls.end("a1")
    assert calls.started[-1] == "a2"
    await calls.end("a2", "a3")


async def test_a_full_queue_of_an_organization_refuses_only_calls_of_that_organization() -> None:
    calls = Calls(FairQueue(running_max=1, waiting_max=2))
    await calls.add("a1", "a2", "a3", "a4")
    with pytest.raises(Refusal) as refused:
        await calls.end("a4")
    assert (refused.value.status, refused.value.code) == (429, "rate_limited")
    assert QUEUE_RETRY_S <= int(refused.value.headers["Retry-After"]) <= 2 * QUEUE_RETRY_S
    await calls.add("b1")
    await calls.end("a1", "a2")
    await calls.add("a5")
    assert await end_all(calls, ["a1", "a2"]) == ["a1", "a2", "b1", "a3", "a5"]


async def test_a_call_that_is_cancelled_in_the_queue_takes_no_turn() -> None:
    calls = Calls(FairQueue(running_max=1, waiting_max=2))
    await calls.add("a1", "a2", "a3", "b1")
    await calls.cancel("a2")
    await calls.cancel("b1")
    await calls.add("a4")
    assert await end_all(calls, ["a1"]) == ["a1", "a3", "a4"]


async def test_a_call_that_is_cancelled_when_it_starts_returns_its_turn() -> None:
    calls = Calls(FairQueue(running_max=1, waiting_max=2))
    await calls.add("a1", "a2", "b1")
    # a1 ends and a2 gets the turn, but a2 is cancelled before it runs.
    calls._ends["a1"].set()
    await asyncio.sleep(0)
    await calls.cancel("a2")
    assert calls.started == ["a1", "b1"]
    await calls.end("b1")
    await calls.add("a3")
    assert calls.started[-1] == "a3"
    await calls.end("a3")
