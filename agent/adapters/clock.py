"""Time: the wall clock for timestamps, the monotonic clock for durations."""

import asyncio
import sys
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The clocks of the machine, or virtual ones in tests."""

    def now(self) -> datetime:
        """Return the wall clock's time, aware, in UTC."""

    def monotonic(self) -> float:
        """Return seconds that never jump and that continue while the machine sleeps.

        Only differences have a meaning.
        """

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        # time.monotonic() stops in suspend on Linux (clock_gettime(2)) and on macOS
        # (mach_absolute_time); on Windows it continues.
        if sys.platform == "linux":
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        elif sys.platform == "darwin":  # noqa: RET505 - mypy knows platforms by branches
            return time.clock_gettime(time.CLOCK_MONOTONIC)
        else:
            return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
