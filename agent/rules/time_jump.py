"""Detects jumps of time between two readings of the clocks.

Connections do not survive the machine's sleep, and setting the wall clock moves every timer that
uses it. Nothing notifies the agent of either.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

SLEEP_WORTH_S: Final = 30.0
"""A busy machine is late by seconds only, and connections survive shorter pauses."""
STEP_WORTH_S: Final = 5.0
"""Slewing (adjtime(3)) stays far below this between two readings."""


@dataclass(frozen=True, slots=True)
class ClockReading:
    """Both clocks at one time; ``monotonic_s`` continues while the machine sleeps."""

    wall: datetime
    monotonic_s: float


@dataclass(frozen=True, slots=True)
class TimeJump:
    """``slept_s``: duration of a sleep. ``stepped_s``: change of the wall clock."""

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


def jump_between(before: ClockReading, after: ClockReading, *, meant_s: float) -> TimeJump | None:
    """Compare two readings with an intended interval of ``meant_s``."""
    passed_s = after.monotonic_s - before.monotonic_s
    slept_s = passed_s - meant_s
    stepped_s = (after.wall - before.wall).total_seconds() - passed_s
    jump = TimeJump(
        slept_s=slept_s if slept_s >= SLEEP_WORTH_S else 0.0,
        stepped_s=stepped_s if abs(stepped_s) >= STEP_WORTH_S else 0.0,
    )
    return None if jump == TimeJump() else jump
