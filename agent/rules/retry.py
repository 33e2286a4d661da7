"""Waits before retries. The waits of a `Backoff` grow up to a maximum, and half of each of these
waits is random (jitter).

The jitter prevents many devices from retrying at the same time. The other half of the wait is
fixed, to limit the number of attempts (AWS Architecture Blog, "Exponential Backoff And Jitter":
equal jitter).
"""

from dataclasses import dataclass
from random import Random
from typing import Final


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that double with each failed try, from ``base_s`` to at most ``cap_s`` seconds."""

    base_s: float
    cap_s: float

    def delay_s(self, attempt: int, rng: Random) -> float:
        """Return the wait after the failed try number ``attempt``, counted from 1."""
        exponent = min(max(attempt, 1) - 1, 64)  # a larger exponent could overflow
        ceiling = min(self.cap_s, self.base_s * 2.0**exponent)
        return ceiling * rng.uniform(0.5, 1.0)


UNAVAILABLE: Final = Backoff(base_s=1.0, cap_s=24.0)
"""Waits after calls without a usable reply. A device tries at most 25 times in 3 minutes, and
reaches the service again at most half a minute after the end of an outage, unless the service
spreads reconnections over a longer time."""

CREDENTIAL: Final = Backoff(base_s=10.0, cap_s=900.0)
"""Waits after 401, and after a failed enrollment. A wait ends early if a user replaces the API
key."""

REVOKED: Final = Backoff(base_s=60.0, cap_s=1800.0)
"""Waits between two checks of whether the device is still revoked."""

RETRY_AFTER_MIN_S: Final = 2.0
"""Minimum of the first wait that the service requests. It limits each operation to 30 calls a
minute."""
RETRY_AFTER_AGAIN_MIN_S: Final = 5.0
"""Minimum of the second and each further consecutive wait that the service requests."""
RETRY_AFTER_MAX_S: Final = 3600.0
"""Maximum of a wait that the service requests."""
JUST_BOOTED_S: Final = 120.0
"""Uptime below which a machine counts as just booted."""
FIRST_CONTACT_SPREAD_S: Final = 10.0
"""The first calls of machines that just booted are spread over this time, because many machines
boot together after a power cut."""
RECONNECT_SPREAD_MAX_S: Final = 60.0
"""Maximum time over which a service can spread the reconnections of its devices."""


def reconnect_spread_s(requested_s: float) -> float:
    """Return the time over which devices spread their reconnections.

    It is ``requested_s``, the time that the service requests, within limits. The service sends
    ``requested_s`` as the reconnection time of server-sent events (HTML standard, 9.2), and
    increases it with the number of its open command streams.
    """
    return min(max(requested_s, 0.0), RECONNECT_SPREAD_MAX_S)


def unavailable_delay_s(attempt: int, spread_s: float, rng: Random) -> float:
    """Return the wait after a call without a reply.

    It is at least half of ``spread_s``, the time over which devices spread their reconnections.
    """
    return max(UNAVAILABLE.delay_s(attempt, rng), spread_s * rng.uniform(0.5, 1.5))


def first_contact_delay_s(uptime_s: float, rng: Random) -> float:
    """Return the wait before the first call of a daemon. It is 0 unless the machine just booted."""
    return rng.uniform(0.0, FIRST_CONTACT_SPREAD_S) if uptime_s < JUST_BOOTED_S else 0.0


def throttled_delay_s(retry_after_s: float | None, attempt: int, rng: Random) -> float:
    """Return the wait after a failure of one operation, such as 429 or 503.

    It is ``retry_after_s``, the wait that the service requests, within limits, plus a random part
    of up to a tenth. If the service requests no wait, the wait is one of `UNAVAILABLE`.
    """
    if retry_after_s is None:
        return UNAVAILABLE.delay_s(attempt, rng)
    minimum_s = RETRY_AFTER_MIN_S if attempt <= 1 else RETRY_AFTER_AGAIN_MIN_S
    wait_s = min(max(retry_after_s, minimum_s), RETRY_AFTER_MAX_S)
    return wait_s * rng.uniform(1.0, 1.1)
