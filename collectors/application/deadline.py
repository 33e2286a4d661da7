"""The moment at which a source must have returned."""

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """``at`` is on the monotonic clock, in seconds."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        return cls(time.monotonic() + seconds)

    def remaining_s(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - time.monotonic())

    def sooner(self, seconds: float) -> "Deadline":
        """The earlier of this deadline and ``seconds`` from now."""
        return Deadline(min(self.at, time.monotonic() + seconds))

    def require_s(self) -> float:
        """Seconds left. Raises TimeoutError when there are none."""
        left = self.remaining_s()
        if left <= 0:
            raise TimeoutError("no answer within the time for it")
        return left
