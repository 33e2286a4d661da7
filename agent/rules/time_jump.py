"""Whether time went on as it should between two looks at the clocks.

A machine that sleeps takes none of its connections with it, and a wall clock that is set moves
every timer that counts on it: both have to be noticed, as nothing tells of them.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

SLEEP_WORTH_S: Final = 30.0
"""A busy machine is late by seconds; a connection that was silent for less is still good."""
STEP_WORTH_S: Final = 5.0
"""Slewing (adjtime(3)) stays far below this between two looks."""


@dataclass(frozen=True, slots=True)
class Look:
    """Both clocks at one moment; ``monotonic_s`` goes on while the machine sleeps."""

    wall: datetime
    monotonic_s: float


@dataclass(frozen=True, slots=True)
class TimeJump:
    """``slept_s``: nothing ran for so long. ``stepped_s``: the wall clock was set by so much."""

    slept_s: float = 0.0
    stepped_s: float = 0.0

    def in_words(self) -> str:
        parts = []
        if self.slept_s:
            parts.append(f"this machine slept for {self.slept_s:.0f} s")
        if self.stepped_s:
            direction = "forward" if self.stepped_s > 0 else "back"
            parts.append(f"the clock was set {direction} by {abs(self.stepped_s):.0f} s")
        return " and ".join(parts)


def jump_between(before: Look, after: Look, *, meant_s: float) -> TimeJump | None:
    """Judge two looks that were meant to be ``meant_s`` apart."""
    passed_s = after.monotonic_s - before.monotonic_s
    slept_s = passed_s - meant_s
    stepped_s = (after.wall - before.wall).total_seconds() - passed_s
    jump = TimeJump(
        slept_s=slept_s if slept_s >= SLEEP_WORTH_S else 0.0,
        stepped_s=stepped_s if abs(stepped_s) >= STEP_WORTH_S else 0.0,
    )
    return None if jump == TimeJump() else jump
