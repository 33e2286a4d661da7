"""How many devices must be offline for a site outage (rule 5 of `alerts.rules`). Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

ALL_MIN: Final = 2
"""Number of offline devices that are enough if no other device was online before."""
MANY_MIN: Final = 3
"""Minimum number of offline devices if other devices were online before and still are."""
MANY_SHARE: Final = (4, 5)
"""In this case, at least this share of the devices that were online before must also be offline.
The values are numerator and denominator.
"""


def went_offline_together(begins: Sequence[datetime], devices: int, within: timedelta) -> bool:
    """Return whether enough devices for a site outage became offline at about the same time.

    Args:
        begins: when each offline device became offline.
        devices: number of devices of the location, without those in maintenance.
        within: longest time between the first and the last device of the outage.
    """
    sorted_begins = sorted(begins)
    for first in sorted(set(begins)):
        earlier = bisect_left(sorted_begins, first)
        group = bisect_right(sorted_begins, first + within) - earlier
        # The devices that became offline earlier were not online before this outage.
        if is_enough(group, devices - earlier):
            return True
    return False


def is_enough(count: int, devices: int) -> bool:
    """Return whether ``count`` of ``devices`` that were online are enough for a site outage."""
    if count == devices:
        return count >= ALL_MIN
    numerator, denominator = MANY_SHARE
    return count >= MANY_MIN and count * denominator >= devices * numerator
