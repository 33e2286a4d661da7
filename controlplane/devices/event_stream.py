"""An open stream of events that waits until there is something to send."""

import asyncio


class EventStream:
    """The base class of open streams. Use it from the event loop only."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()
        self.is_ended = False

    def wake(self) -> None:
        self._woken.set()

    def end(self) -> None:
        self.is_ended = True
        self.wake()

    async def wait(self, within_s: float) -> None:
        """Wait until `wake` is called, but at most ``within_s`` seconds."""
        # A timer and an event cost less than `asyncio.timeout`, and streams wait most of the time.
        timer = asyncio.get_running_loop().call_later(within_s, self.wake)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()
        self._woken.clear()
