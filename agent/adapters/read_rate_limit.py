"""A rate limit for reading the service's streams (a token bucket).

A service, or an attacker that impersonates it, can send data without end. The limit bounds the CPU
time for parsing. It needs no memory, because TCP's flow control makes the sender keep unread data.
"""

from typing import Final

from agent.adapters.clock import Clock

BURST_BYTES: Final = 2_097_152
"""Size of the bucket: enough for several thousand queued requests."""
RATE_BYTES_S: Final = 16_384
"""Refill per second: enough for about 60 requests."""


class ReadRateLimit:
    """A bucket of bytes that refills over time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._balance_bytes = float(BURST_BYTES)
        self._refilled_at_s = clock.monotonic()

    async def acquire(self, size_bytes: int) -> None:
        """Wait until the limit allows the agent to process ``size_bytes``."""
        now_s = self._clock.monotonic()
        available_bytes = self._balance_bytes + max(0.0, now_s - self._refilled_at_s) * RATE_BYTES_S
        self._balance_bytes = min(float(BURST_BYTES), available_bytes) - size_bytes
        self._refilled_at_s = now_s
        if self._balance_bytes < 0:
            await self._clock.sleep(-self._balance_bytes / RATE_BYTES_S)
