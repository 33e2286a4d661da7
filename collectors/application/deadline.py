"""The time by which a reader of facts must return."""

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point in time. ``at`` is a time of the monotonic clock, in seconds."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        return cls(time.monotonic() + seconds)

    def remaining_s(self) -> float:
        """Return the seconds left, never less than 0."""
        return max(0.0, self.at - time.monotonic())

    def sooner(self, seconds: float) -> "Deadline":
        """Return the earlier of this deadline and ``seconds`` from now."""
        return Deadline(min(self.at, time.monotonic() + seconds))

    def require_s(self) -> float:
        """Return the seconds left. Raises TimeoutError if there are none."""
        remaining_s = self.remaining_s()
        if remaining_s <= 0:
            raise TimeoutError("no answer within the time limit")
        return remaining_s
