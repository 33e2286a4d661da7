"""What ends a loop's wait: somebody has work for it, or its time is over."""

import asyncio

from agent.adapters.clock import Clock


class Wakeup:
    """Set by anybody, waited for by one loop, which clears it before it looks for work."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    def clear(self) -> None:
        self._event.clear()

    async def wait(self, at_most_s: float | None = None) -> None:
        """Return when it is set, or after ``at_most_s``."""
        if at_most_s is None:
            await self._event.wait()
            return
        sleep = asyncio.ensure_future(self._clock.sleep(at_most_s))
        woken = asyncio.ensure_future(self._event.wait())
        try:
            await asyncio.wait((sleep, woken), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleep.cancel()
            woken.cancel()
