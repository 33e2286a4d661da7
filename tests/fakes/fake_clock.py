"""A clock with virtual time. When all tasks wait, it advances until the first task wakes up."""

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 20, 19, 0, tzinfo=UTC)
TURNS_MAX = 30
"""Iterations of the event loop after which all tasks are assumed to wait.

Usually, fewer iterations are enough: if nothing is ready to run in the event loop, all tasks wait.
But if there is a second clock, its task is ready in each iteration. The tasks must not use I/O: the
clock would not wait for it."""


class FakeClock:
    """A clock whose time passes when all tasks wait, and by `advance`.

    ``slept`` lists each completed wait, in seconds. ``suspended_s`` is how long the machine was
    suspended. ``stepped_s`` is how far the wall clock was set ahead. At ``limit_s`` the time stands
    still, and ``is_at_limit`` is set.
    """

    def __init__(self, limit_s: float = 7 * 86_400.0) -> None:
        self.elapsed_s = 0.0
        self.suspended_s = 0.0
        self.stepped_s = 0.0
        self.limit_s = limit_s
        self.slept: list[float] = []
        self.is_at_limit = asyncio.Event()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()
        self._mover: asyncio.Task[None] | None = None

    def now(self) -> datetime:
        return START + timedelta(seconds=self.elapsed_s + self.stepped_s)

    def monotonic(self) -> float:
        return 1000.0 + self.elapsed_s  # a monotonic clock begins at any value

    def slept_s(self) -> float:
        """Return how long the machine, not a task, has slept."""
        return self.suspended_s

    def advance(self, seconds: float) -> None:
        """Advance the time at once, as a long call does."""
        self.elapsed_s += seconds

    async def sleep(self, seconds: float) -> None:
        wakeup: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        until = self.elapsed_s + max(seconds, 0.0)
        heapq.heappush(self._sleepers, (until, next(self._numbers), wakeup))
        if self._mover is None or self._mover.done():
            self._mover = asyncio.create_task(self._move())
        await wakeup
        self.slept.append(seconds)

    async def _move(self) -> None:
        ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
        while True:
            for _ in range(TURNS_MAX):
                await asyncio.sleep(0)
                if not ready:
                    break
            while self._sleepers and self._sleepers[0][2].done():
                heapq.heappop(self._sleepers)  # its waiter was cancelled
            if not self._sleepers:
                return
            if self._sleepers[0][0] > self.limit_s:
                self.is_at_limit.set()
                return
            until, _, wakeup = heapq.heappop(self._sleepers)
            self.elapsed_s = max(self.elapsed_s, until)
            wakeup.set_result(None)
