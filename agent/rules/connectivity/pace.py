"""When the next probe of an interrupted connection is due."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

FAST_S: Final = 5.0
SLOW_S: Final = 10.0
LONG_S: Final = 60.0
"""The pauses between two probes, in seconds. `ProbePace` describes when each is used."""
FAST_PER_HOUR_S: Final = 300.0
"""Maximum sum of the five-second pauses in an hour."""
LONG_AFTER: Final = timedelta(hours=1)
_HOUR: Final = timedelta(hours=1)


@dataclass(slots=True)
class ProbePace:
    """The pauses between probes.

    A pause is five seconds for at most five minutes in an hour, and then ten seconds. After an hour
    without a connection, it is a minute.
    """

    _hour_began_at: datetime | None = None
    _fast_s: float = 0.0
    """Sum of the five-second pauses since ``_hour_began_at``."""

    def pause_s(self, now: datetime, interrupted_since: datetime) -> float:
        """Return the time until the next probe, in seconds."""
        if self._hour_began_at is None or not timedelta() <= now - self._hour_began_at < _HOUR:
            self._hour_began_at, self._fast_s = now, 0.0
        if now - interrupted_since >= LONG_AFTER:
            return LONG_S
        if self._fast_s < FAST_PER_HOUR_S:
            self._fast_s += FAST_S
            return FAST_S
        return SLOW_S
