"""Virtual time for whole agents: an event loop that does not wait for its timers, and a clock.

The loop handles events of sockets and child processes in real time. When it is idle, it jumps to
its next timer. So a client and a server in the same loop use real connections while days pass in
seconds, and all timeouts of asyncio work in virtual time.
"""

import asyncio
import contextlib
import selectors
import socket
from collections.abc import Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

Result = TypeVar("Result")

HOPS = 3
"""The number of packets before a server can accept a connection (SYN, SYN-ACK, ACK). Each packet
is sent when the previous one arrives."""


class _JumpingSelector(selectors.DefaultSelector):
    """A selector that does not wait for timeouts.

    If nothing is ready, virtual time advances by the timeout. Without a timeout, the selector waits
    for an event in real time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.has_sockets = True
        self.passed_s = 0.0
        self._probe: socket.socket | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if timeout is None:
            return super().select(None)
        if self.has_sockets:
            self._await_delivery()
            if ready := super().select(0):
                return ready
        self.passed_s += timeout
        return []

    def close(self) -> None:
        if self._probe is not None:
            self._probe.close()
        super().close()

    def _await_delivery(self) -> None:
        """Wait until the kernel has delivered all data that was sent over loopback.

        Loopback is a queue: a datagram arrives after everything that was sent before it. So this
        method sends a datagram from a socket to the same socket and waits for it, once for each of
        the ``HOPS``. The wait is exactly as long as necessary, even on a busy machine.
        """
        if self._probe is None:
            self._probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._probe.bind(("127.0.0.1", 0))
            self._probe.connect(self._probe.getsockname())
        for _ in range(HOPS):
            self._probe.send(b"?")
            self._probe.recv(1)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """The event loop that the docstring of this module describes."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    @contextlib.contextmanager
    def without_sockets(self) -> Iterator[None]:
        """Within this context, do not wait for packets.

        Use it for long periods in which no socket is used.
        """
        self._jumping.has_sockets = False
        try:
            yield
        finally:
            self._jumping.has_sockets = True

    def time(self) -> float:
        return 1000.0 + self._jumping.passed_s  # a monotonic clock begins at any value


class VirtualClock:
    """The clocks of a machine, which follow a VirtualTimeLoop. `suspend` and `step` change them."""

    def __init__(self) -> None:
        self._began_at = datetime.now(UTC)
        self._suspended_s = 0.0
        self._stepped_s = 0.0
        self._began_s = asyncio.get_running_loop().time()

    @property
    def passed_s(self) -> float:
        """True time since the beginning, in seconds."""
        return asyncio.get_running_loop().time() - self._began_s + self._suspended_s

    def true_time(self) -> datetime:
        """The time of a correct clock, such as the service's."""
        return self._began_at + timedelta(seconds=self.passed_s)

    def now(self) -> datetime:
        return self.true_time() + timedelta(seconds=self._stepped_s)

    def monotonic(self) -> float:
        return 5000.0 + self.passed_s  # a monotonic clock begins at any value

    def slept_s(self) -> float:
        return self._suspended_s

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def suspend(self, seconds: float) -> None:
        """Simulate that the machine sleeps: time passes, but no timer of the loop fires."""
        self._suspended_s += seconds

    def step(self, seconds: float) -> None:
        """Set the wall clock forward or back."""
        self._stepped_s += seconds


def run_in_virtual_time(main: Coroutine[Any, Any, Result]) -> Result:
    """Run ``main`` to its end on a loop of virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
