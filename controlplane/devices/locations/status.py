"""Whether a device is heard, and whether it has to be.

It has to be while its location is open and nobody said that it is worked on. From the moment at
which it has to be, it has the time of the missed heartbeats to be heard.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple
from uuid import UUID

from controlplane.devices.locations.opening_hours import OpeningHours

State = Literal["heard", "offline", "closed", "maintenance"]


@dataclass(frozen=True, slots=True)
class Maintenance:
    """``instance_id`` None is the whole location."""

    instance_id: UUID | None
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Place:
    """``hours`` None is always open."""

    hours: OpeningHours | None = None
    maintenance: tuple[Maintenance, ...] = ()

    def of(self, instance_id: UUID | None) -> tuple[Maintenance, ...]:
        """Return what is said for this device; None for what is said for all."""
        return tuple(each for each in self.maintenance if each.instance_id in {None, instance_id})


ALWAYS_OPEN = Place()


class Standing(NamedTuple):
    """``since`` is from when the device has to be heard and is not; None unless it is offline.

    ``until`` is when the maintenance ends, which a device that is heard may be in too.
    """

    state: State
    since: datetime | None = None
    until: datetime | None = None


def standing(
    place: Place, instance_id: UUID, last_seen_at: datetime, now: datetime, window: timedelta
) -> Standing:
    """Judge a device by when it was last heard. ``window`` is the time to be heard in."""
    said = place.of(instance_id) if place.maintenance else ()
    until = max((each.until for each in said if each.since <= now < each.until), default=None)
    if now - last_seen_at <= window:
        return Standing("heard", None, until)
    if until is not None:
        return Standing("maintenance", None, until)
    opened_at = last_seen_at
    if place.hours is not None:
        opened = place.hours.opened_at(now)
        if opened is None:
            return Standing("closed")
        opened_at = opened
    quiet_until = _latest((each.until for each in said if each.until <= now), last_seen_at)
    since = max(last_seen_at, opened_at, quiet_until)
    if now - since > window:
        return Standing("offline", since)
    return Standing("closed" if opened_at == since else "maintenance")


def _latest(moments: Iterable[datetime], least: datetime) -> datetime:
    return max(moments, default=least)
