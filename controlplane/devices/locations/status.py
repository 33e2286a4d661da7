"""Whether a device is online, and whether it should be.

A device should be online while its location is open and neither is in maintenance. From then on it
has the online window to send a heartbeat.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple
from uuid import UUID

from controlplane.devices.locations.opening_hours import OpeningHours

State = Literal["online", "offline", "closed", "maintenance"]


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A maintenance window. ``instance_id`` None is the whole location."""

    instance_id: UUID | None
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Schedule:
    """Opening hours and maintenance windows of a location. ``hours`` None means always open."""

    hours: OpeningHours | None = None
    maintenance: tuple[Maintenance, ...] = ()

    def windows_of(self, instance_id: UUID | None) -> tuple[Maintenance, ...]:
        """Return the windows of the location and of this device."""
        return tuple(each for each in self.maintenance if each.instance_id in {None, instance_id})


ALWAYS_OPEN = Schedule()


class DeviceStatus(NamedTuple):
    """The status of a device.

    Attributes:
        since: from when the device should have been online; None unless it is offline.
        until: end of the current maintenance, also of a device that is online.
    """

    state: State
    since: datetime | None = None
    until: datetime | None = None


def status_of(
    schedule: Schedule, instance_id: UUID, last_seen_at: datetime, now: datetime, window: timedelta
) -> DeviceStatus:
    """Return the status of a device. ``window`` is the time within which it has to be seen."""
    windows = schedule.windows_of(instance_id) if schedule.maintenance else ()
    until = max((each.until for each in windows if each.since <= now < each.until), default=None)
    if now - last_seen_at <= window:
        return DeviceStatus("online", None, until)
    if until is not None:
        return DeviceStatus("maintenance", None, until)
    opened_at = last_seen_at
    if schedule.hours is not None:
        opened = schedule.hours.opened_at(now)
        if opened is None:
            return DeviceStatus("closed")
        opened_at = opened
    since = max(last_seen_at, opened_at, *(each.until for each in windows if each.until <= now))
    if now - since > window:
        return DeviceStatus("offline", since)
    return DeviceStatus("closed" if opened_at == since else "maintenance")
