"""Time: the wall clock for what people and the service read, the monotonic one for durations."""

import asyncio
import sys
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the wall clock's time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never jump and go on while the machine sleeps.

        Only differences mean anything.
        """
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        # time.monotonic() stands still in suspend on Linux (clock_gettime(2)) and on macOS
        # (mach_absolute_time); on Windows it goes on.
        if sys.platform == "linux":
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        elif sys.platform == "darwin":  # noqa: RET505 - mypy knows platforms by branches
            return time.clock_gettime(time.CLOCK_MONOTONIC)
        else:
            return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
