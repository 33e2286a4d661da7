"""How many devices must be offline for a site outage (rule 5 of `alerts.rules`)."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

ALL_MIN: Final = 2
"""Minimum number of offline devices if all devices that were online before are offline now."""
MANY_MIN: Final = 3
"""Minimum number of offline devices if some devices that were online before are still online."""
MANY_SHARE: Final = (4, 5)
"""Minimum share of offline devices among the devices that were online before, as numerator and
denominator. `MANY_MIN` and `MANY_SHARE` apply together.
"""


def went_offline_together(
    offline_since: Sequence[datetime], device_count: int, within: timedelta
) -> bool:
    """Return whether enough devices for a site outage became offline at about the same time.

    Args:
        offline_since: when each offline device became offline.
        device_count: number of devices of the location, without those in maintenance.
        within: longest time between the first and the last device of the outage.
    """
    times = sorted(offline_since)
    for first in sorted(set(times)):
        earlier_count = bisect_left(times, first)
        group_count = bisect_right(times, first + within) - earlier_count
        # The devices that became offline earlier were not online before this outage.
        if is_enough(group_count, device_count - earlier_count):
            return True
    return False


def is_enough(count: int, device_count: int) -> bool:
    """Return whether ``count`` offline devices are enough for a site outage.

    ``device_count`` is the number of devices that were online before.
    """
    if count == device_count:
        return count >= ALL_MIN
    numerator, denominator = MANY_SHARE
    return count >= MANY_MIN and count * denominator >= device_count * numerator
