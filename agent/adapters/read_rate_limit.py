"""A rate limit on what is read of the service's streams (a token bucket).

A service, or who stands in its place, can send without end. What is not read stays with the sender
(TCP's flow control), so reading slowly costs nothing and bounds what parsing costs.
"""

from typing import Final

from agent.adapters.clock import Clock

BURST_BYTES: Final = 2_097_152
"""Read at once: some thousand requests that have queued up."""
RATE_BYTES_S: Final = 16_384
"""Read a second after that, for as long as it takes: some 60 requests."""


class ReadRateLimit:
    """A bucket of bytes that fills up again by itself."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left_bytes = float(BURST_BYTES)
        self._refilled_at_s = clock.monotonic()

    async def acquire(self, size_bytes: int) -> None:
        """Return when ``size_bytes`` that have come may be looked at."""
        now_s = self._clock.monotonic()
        filled = self._left_bytes + max(0.0, now_s - self._refilled_at_s) * RATE_BYTES_S
        self._left_bytes = min(float(BURST_BYTES), filled) - size_bytes
        self._refilled_at_s = now_s
        if self._left_bytes < 0:
            await self._clock.sleep(-self._left_bytes / RATE_BYTES_S)
