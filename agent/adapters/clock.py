"""Time: the wall clock for timestamps, the monotonic clock for durations."""

import asyncio
import sys
import time
from datetime import UTC, datetime
from typing import Any, Protocol


class Clock(Protocol):
    """The clocks of the machine, or virtual ones in tests."""

    def now(self) -> datetime:
        """Return the time of the wall clock, with the time zone UTC."""

    def monotonic(self) -> float:
        """Return a time in seconds that never jumps, and that advances while the machine sleeps.

        Only the difference of two values has a meaning.
        """

    def slept_s(self) -> float:
        """Return the time in seconds that the machine has slept since its start.

        The result is always 0 on a platform that does not report this time.
        """

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        # While the machine sleeps, time.monotonic() stops on Linux (clock_gettime(2)) and on macOS
        # (mach_absolute_time), but CLOCK_BOOTTIME on Linux and CLOCK_MONOTONIC on macOS advance.
        if sys.platform == "linux":
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        elif sys.platform == "darwin":  # noqa: RET505 - else mypy finds unreachable code
            return time.clock_gettime(time.CLOCK_MONOTONIC)
        else:
            return time.monotonic()

    def slept_s(self) -> float:
        return self.monotonic() - time.monotonic() if sys.platform in ("linux", "darwin") else 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def wait_at_most(event: asyncio.Event, seconds: float | None, clock: Clock) -> None:
    """Return when ``event`` is set, or after ``seconds``; None means no limit."""
    waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(event.wait())]
    if seconds is not None:
        waits.append(asyncio.ensure_future(clock.sleep(seconds)))
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiter in waits:
            waiter.cancel()
