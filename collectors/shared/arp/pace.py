"""Limits how fast addresses are contacted, because bursts trigger security alarms.

No I/O: callers pass ``now``, in seconds of a monotonic clock.
"""

from dataclasses import dataclass

DATAGRAMS_PER_S = 2000.0
CONNECTIONS_PER_S = 3000.0
_BURST = 32.0
_ROUNDING = 1e-6  # added, so that 0.9999999 tokens count as one


@dataclass(slots=True)
class Pace:
    """A token bucket. Each datagram or connection takes one token.

    The bucket gains ``rate_per_s`` tokens a second, and holds at most `_BURST` tokens.
    """

    rate_per_s: float
    tokens: float = _BURST
    refilled_s: float | None = None

    def available(self, now: float) -> int:
        """Refill the bucket, and return how many tokens can be spent now."""
        if self.refilled_s is not None:
            self.tokens = min(_BURST, self.tokens + (now - self.refilled_s) * self.rate_per_s)
        self.refilled_s = now
        return int(self.tokens + _ROUNDING)

    def spend(self, count: int) -> None:
        self.tokens -= count

    def next_s(self) -> float:
        """Return the seconds from the last refill until a token can be spent."""
        return max(0.0, 1.0 - self.tokens) / self.rate_per_s
