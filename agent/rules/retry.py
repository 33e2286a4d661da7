"""How long to wait before trying again: growing, jittered, capped.

The jitter keeps a fleet from coming back in step; half of each wait is fixed, so that the number
of attempts in any time is bounded (AWS Architecture Blog, "Exponential Backoff And Jitter",
calls it equal jitter).
"""

from dataclasses import dataclass
from random import Random
from typing import Final


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits grow from ``base_s`` by ``factor`` up to ``cap_s`` (seconds)."""

    base_s: float
    cap_s: float
    factor: float = 2.0

    def delay_s(self, attempt: int, rng: Random) -> float:
        """Return the wait before try ``attempt + 1``; the first failed try is attempt 1."""
        exponent = min(max(attempt, 1) - 1, 64)
        ceiling = min(self.cap_s, self.base_s * self.factor**exponent)
        return ceiling * rng.uniform(0.5, 1.0)


UNAVAILABLE: Final = Backoff(base_s=1.0, cap_s=24.0)
"""No usable answer. Back within half a minute of the service's return, at most 25 tries in 3."""

CREDENTIAL: Final = Backoff(base_s=10.0, cap_s=900.0)
"""401: a person has to act; the key is read again each time."""

REVOKED: Final = Backoff(base_s=60.0, cap_s=1800.0)
"""The device was revoked: ask slowly whether it still is."""

RETRY_AFTER_MIN_S: Final = 2.0
"""Nor may it make the agent ask more often than 30 times a minute."""
RETRY_AFTER_AGAIN_MIN_S: Final = 5.0
"""A service that wishes for less, again and again, does not mean it."""
JUST_BOOTED_S: Final = 120.0
FIRST_CONTACT_SPREAD_S: Final = 10.0
"""When the power comes back, a whole street of machines boots at the same moment."""
RECONNECT_OVER_MAX_S: Final = 60.0
"""No service may spread the return of its callers over longer than this."""


def reconnect_over_s(wish_s: float) -> float:
    """Return the time over which callers return together: the service's wish within bounds.

    A service says it by the reconnection time of server-sent events (HTML standard, 9.2): only it
    knows how many others it has to take back.
    """
    return min(max(wish_s, 0.0), RECONNECT_OVER_MAX_S)


def unavailable_delay_s(attempt: int, over_s: float, rng: Random) -> float:
    """Return the wait after nobody answered, where callers return over ``over_s`` seconds."""
    return max(UNAVAILABLE.delay_s(attempt, rng), over_s * rng.uniform(0.5, 1.5))


def first_contact_delay_s(uptime_s: float, rng: Random) -> float:
    """Return the wait before the first call of a daemon on a machine that is up ``uptime_s``."""
    return rng.uniform(0.0, FIRST_CONTACT_SPREAD_S) if uptime_s < JUST_BOOTED_S else 0.0


RETRY_AFTER_MAX_S: Final = 3600.0
"""No service may silence the agent for longer than this."""


def throttled_delay_s(retry_after_s: float | None, attempt: int, rng: Random) -> float:
    """Return the wait after 429 or 503: the service's wish within bounds, plus up to a tenth."""
    if retry_after_s is None:
        return UNAVAILABLE.delay_s(attempt, rng)
    least = RETRY_AFTER_MIN_S if attempt <= 1 else RETRY_AFTER_AGAIN_MIN_S
    wish = min(max(retry_after_s, least), RETRY_AFTER_MAX_S)
    return wish * rng.uniform(1.0, 1.1)
