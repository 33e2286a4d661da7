"""The service's clock, from the Date header of its replies (RFC 9110, section 6.6.1).

A request's ``expiresAt`` is a time of the service's clock, and clocks in venues are often wrong by
hours. Therefore ``expiresAt`` is compared with the service's clock, not with this machine's.
Durations are measured with the monotonic clock only.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

TOLERANCE: Final = timedelta(seconds=2)
"""Smaller differences are ignored: Date has a resolution of one second, and a reply takes time to
arrive."""


@dataclass(frozen=True, slots=True)
class ClockSkew:
    """The difference of the clocks. ``offset`` is the service's time minus this machine's."""

    offset: timedelta = timedelta(0)

    @classmethod
    def of(cls, offset: timedelta) -> "ClockSkew":
        """Return the skew. A difference of at most `TOLERANCE` counts as zero."""
        return cls(offset if abs(offset) > TOLERANCE else timedelta(0))

    def is_past(self, timestamp: datetime, local_time: datetime) -> bool:
        """Return whether the service's clock is past ``timestamp``."""
        # Only differences are computed, because a sum may overflow for a time in the year 9999.
        return local_time - timestamp >= -self.offset


@dataclass(frozen=True, slots=True)
class ServiceClock:
    """One reading of the service's clock, and of the monotonic clock at the same time.

    The reading advances with the monotonic clock, so setting this machine's clock neither expires
    nor extends a request.
    """

    service_time: datetime
    read_at_s: float

    def skew(self, *, local_time: datetime, monotonic_s: float) -> ClockSkew:
        """Return the present difference between the service's clock and the local clock."""
        elapsed = timedelta(seconds=monotonic_s - self.read_at_s)
        # Only differences of timestamps are computed, as in `is_past`.
        return ClockSkew.of(self.service_time - local_time + elapsed)
