"""From when on a figure has changed: all else is the wobble of what is measured.

A figure that a finding judges (a weak Wi-Fi, a slow answer) is told when the finding comes or goes.
"""

from typing import Final

from agent.presentation.findings.disks import DISK_FILLING, DISK_FULL

DISK_LEVELS: Final = (0.8, DISK_FILLING, DISK_FULL)
"""Shares of a disk in use: passing one is a change."""
DISK_MOVED: Final = 0.02
"""... where it moved by so much of its size, so that one at a level does not come and go."""
BOOT_MOVED_S: Final = 60.0
"""A start of the machine, or of the agent, is worked out from clocks that are set meanwhile."""
STARTED_MOVED_S: Final = 10.0
"""The start of a program or service is told by the system itself."""
MEMORY_MOVED: Final = 0.1
"""Of the memory fitted: what a kernel keeps for itself differs from version to version."""
RENEWED_S: Final = 86400.0
"""The end of a certificate moves by weeks where it is renewed."""


def disk_level(used: float) -> int:
    """Return how many of `DISK_LEVELS` a share in use has passed."""
    return sum(used >= level for level in DISK_LEVELS)


def has_passed_level(before: float, after: float) -> bool:
    return disk_level(before) != disk_level(after) and has_moved(before, after, DISK_MOVED)


def has_moved(before: float, after: float, by: float) -> bool:
    # A hair less: 0.82 - 0.80 is not quite 0.02.
    return abs(after - before) >= by - 1e-9


def has_grown_or_shrunk(before: float, after: float, share: float) -> bool:
    """Tell whether the two differ by at least ``share`` of the larger."""
    return has_moved(before, after, share * max(abs(before), abs(after))) and before != after
