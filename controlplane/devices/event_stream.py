"""One open stream of events: what waits for something to send, and how it is told to end."""

import asyncio


class EventStream:
    """Used from the event loop only."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()
        self.is_ended = False

    def wake(self) -> None:
        self._woken.set()

    def end(self) -> None:
        self.is_ended = True
        self.wake()

    async def wait(self, within_s: float) -> None:
        """Return once it is woken, or after ``within_s``."""
        # A timer and an event, not a timeout: nearly all streams are silent, so this is their cost.
        timer = asyncio.get_running_loop().call_later(within_s, self.wake)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()
        self._woken.clear()
