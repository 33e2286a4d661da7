"""What ends a loop's wait: somebody has work for it, or its time is over."""

import asyncio
from typing import Any

from agent.adapters.clock import Clock


class Wakeup(asyncio.Event):
    """Set by anybody, waited for by one loop, which clears it before it looks for work."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    async def wait_at_most(self, seconds: float | None) -> None:
        """Return when it is set, or after ``seconds``; None is no limit."""
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self.wait())]
        if seconds is not None:
            waits.append(asyncio.ensure_future(self._clock.sleep(seconds)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
