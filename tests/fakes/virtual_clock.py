"""Virtual time for whole agents: an event loop that does not wait, and a clock that follows it.

The loop waits for real only while sockets or children have something to say; as soon as nothing
is left to do it jumps to its next timer. A client and a server in the same loop so talk over real
connections while days pass in seconds, and every timeout of asyncio keeps its meaning.
"""

import asyncio
import contextlib
import selectors
from collections.abc import Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

Result = TypeVar("Result")

GRACE_S = 0.001
"""Loopback delivers at once, but the kernel may finish it a moment after `send` has returned."""


class _JumpingSelector(selectors.DefaultSelector):
    """A selector that passes the time of a wait instead of waiting, when nothing is ready."""

    def __init__(self, grace_s: float) -> None:
        super().__init__()
        self.grace_s = grace_s
        self.passed_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if timeout is None:
            return super().select(None)
        if self.grace_s and (ready := super().select(self.grace_s)):
            return ready
        self.passed_s += timeout
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """See the module."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector(GRACE_S)
        super().__init__(self._jumping)

    @contextlib.contextmanager
    def without_sockets(self) -> Iterator[None]:
        """Give no grace: for long times in which nothing uses the network."""
        grace_s, self._jumping.grace_s = self._jumping.grace_s, 0.0
        try:
            yield
        finally:
            self._jumping.grace_s = grace_s

    def time(self) -> float:
        return 1000.0 + self._jumping.passed_s


class VirtualClock:
    """The machine's clocks over a VirtualTimeLoop; `suspend` and `step` make them jump."""

    def __init__(self) -> None:
        self._began_at = datetime.now(UTC)
        self._suspended_s = 0.0
        self._stepped_s = 0.0
        self._began_s = asyncio.get_running_loop().time()

    @property
    def passed_s(self) -> float:
        """Seconds of true time since the beginning."""
        return asyncio.get_running_loop().time() - self._began_s + self._suspended_s

    def true_time(self) -> datetime:
        """What a right clock shows: the service's, for instance."""
        return self._began_at + timedelta(seconds=self.passed_s)

    def now(self) -> datetime:
        return self.true_time() + timedelta(seconds=self._stepped_s)

    def monotonic(self) -> float:
        return 5000.0 + self.passed_s

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def suspend(self, seconds: float) -> None:
        """Let the machine sleep: time passes, and no timer of the loop notices."""
        self._suspended_s += seconds

    def step(self, seconds: float) -> None:
        """Set the wall clock forward or back."""
        self._stepped_s += seconds


def run_in_virtual_time(main: Coroutine[Any, Any, Result]) -> Result:
    """Run ``main`` to its end on a loop of virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
