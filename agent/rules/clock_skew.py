"""The service's clock, as seen through the Date header of its replies (RFC 9110, section 6.6.1).

A request's ``expiresAt`` is a moment of the service's clock; machines in venues are often hours
off. Durations are never measured with either: they belong to the monotonic clock.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

TOLERANCE: Final = timedelta(seconds=2)
"""Date has a resolution of one second and travels for a while: less is no skew."""


@dataclass(frozen=True, slots=True)
class ClockSkew:
    """``offset`` is the service's time minus ours."""

    offset: timedelta = timedelta(0)

    @classmethod
    def of(cls, offset: timedelta) -> "ClockSkew":
        """Return the skew for a measured difference; a small one is none."""
        return cls(offset if abs(offset) > TOLERANCE else timedelta(0))

    def is_past(self, moment: datetime, local_time: datetime) -> bool:
        """Tell whether ``moment``, given by the service, has passed on the service's clock."""
        # Differences only: a service that believes in the year 9999 must not overflow a sum.
        return local_time - moment >= -self.offset


@dataclass(frozen=True, slots=True)
class ServiceClock:
    """The service's clock as it was seen once: ``shown_at`` is a moment of the monotonic clock.

    From then on it goes with the monotonic clock, so that nobody who sets this machine's clock
    makes a request run out, or keeps one alive.
    """

    shown: datetime
    shown_at: float

    def skew(self, *, local_time: datetime, monotonic_s: float) -> ClockSkew:
        """Return how far the local clock, as it is now, is from the service's."""
        passed = timedelta(seconds=monotonic_s - self.shown_at)
        # Differences only, as in `is_past`.
        return ClockSkew.of(self.shown - local_time + passed)
