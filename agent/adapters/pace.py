"""How fast a stream is read: what a service may say at once, and what it may say for ever.

A service, or who stands in its place, can send without end. What is not read stays with the sender
(TCP's flow control), so reading slowly costs nothing and bounds what parsing costs.
"""

from typing import Final

from agent.adapters.clock import Clock

BURST_BYTES: Final = 2_097_152
"""Read at once: some thousand requests that have queued up."""
RATE_BYTES_S: Final = 16_384
"""Read a second after that, for as long as it takes: some 60 requests."""


class Pace:
    """A bucket of bytes that fills up again by itself."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left = float(BURST_BYTES)
        self._seen_at = clock.monotonic()

    async def spend(self, size_bytes: int) -> None:
        """Return when ``size_bytes`` that have come may be looked at."""
        now = self._clock.monotonic()
        filled = self._left + max(0.0, now - self._seen_at) * RATE_BYTES_S
        self._left = min(float(BURST_BYTES), filled) - size_bytes
        self._seen_at = now
        if self._left < 0:
            await self._clock.sleep(-self._left / RATE_BYTES_S)
