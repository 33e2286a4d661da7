"""Detects jumps of time between two readings of the clocks.

Connections do not survive the machine's sleep, and setting the wall clock moves every timer that
uses it. The system does not notify the agent of a sleep or of a new time, so the agent compares the
clocks at intervals.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

SLEEP_MIN_S: Final = 30.0
"""Minimum delay that counts as a sleep. On a busy machine, a timer is late by a few seconds only,
and connections survive shorter pauses."""
STEP_MIN_S: Final = 5.0
"""Minimum change of the wall clock that counts as a jump. Gradual adjustment (adjtime(3)) changes
the clock by far less between two readings."""


@dataclass(frozen=True, slots=True)
class ClockReading:
    """One reading of both clocks. ``monotonic_s`` continues while the machine sleeps."""

    wall: datetime
    monotonic_s: float


@dataclass(frozen=True, slots=True)
class TimeJump:
    """A jump of time.

    ``slept_s`` is how long the machine slept. ``stepped_s`` is the change of the wall clock. It is
    negative if the clock was set back.
    """

    slept_s: float = 0.0
    stepped_s: float = 0.0

    def describe(self) -> str:
        parts = []
        if self.slept_s:
            parts.append(f"this machine slept for {self.slept_s:.0f} s")
        if self.stepped_s:
            direction = "forward" if self.stepped_s > 0 else "back"
            parts.append(f"the clock was set {direction} by {abs(self.stepped_s):.0f} s")
        return " and ".join(parts)


def jump_between(before: ClockReading, after: ClockReading, *, planned_s: float) -> TimeJump | None:
    """Return the jump between two readings; None if there was none.

    ``planned_s`` is the planned time between the readings.
    """
    passed_s = after.monotonic_s - before.monotonic_s
    slept_s = passed_s - planned_s
    stepped_s = (after.wall - before.wall).total_seconds() - passed_s
    jump = TimeJump(
        slept_s=slept_s if slept_s >= SLEEP_MIN_S else 0.0,
        stepped_s=stepped_s if abs(stepped_s) >= STEP_MIN_S else 0.0,
    )
    return None if jump == TimeJump() else jump
