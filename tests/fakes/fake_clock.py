"""A clock of virtual time: `sleep` returns at once, and the time has passed."""

import asyncio
from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 20, 19, 0, tzinfo=UTC)


class FakeClock:
    """``slept`` holds each wait in seconds. After ``limit_s`` in all, sleeping never ends."""

    def __init__(self, limit_s: float = 7 * 86_400.0) -> None:
        self.elapsed_s = 0.0
        self.limit_s = limit_s
        self.slept: list[float] = []
        self.is_at_limit = asyncio.Event()

    def now(self) -> datetime:
        return START + timedelta(seconds=self.elapsed_s)

    def monotonic(self) -> float:
        return 1000.0 + self.elapsed_s

    def advance(self, seconds: float) -> None:
        self.elapsed_s += seconds

    async def sleep(self, seconds: float) -> None:
        if self.elapsed_s + seconds > self.limit_s:
            self.is_at_limit.set()
            await asyncio.Event().wait()
        self.slept.append(seconds)
        self.advance(seconds)
        await asyncio.sleep(0)
