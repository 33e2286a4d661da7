"""Whether a device is online, and whether it should be.

A device should be online while its location is open and neither the device nor the location is in
maintenance. When the location opens or the maintenance ends, the device has the time
``online_within`` to send a heartbeat. If it sends none within this time, it is offline.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple
from uuid import UUID

from controlplane.devices.locations.opening_hours import OpeningHours

State = Literal["online", "offline", "closed", "maintenance"]


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A maintenance window of a device, or of the whole location if ``instance_id`` is None."""

    instance_id: UUID | None
    since: datetime
    until: datetime

    def includes(self, now: datetime) -> bool:
        return self.since <= now < self.until


@dataclass(frozen=True, slots=True)
class Schedule:
    """Opening hours and maintenance windows of a location. ``hours`` None means always open."""

    hours: OpeningHours | None = None
    maintenance: tuple[Maintenance, ...] = ()

    def windows_of(self, instance_id: UUID | None) -> tuple[Maintenance, ...]:
        """Return the windows of the location and of this device."""
        return tuple(
            window for window in self.maintenance if window.instance_id in {None, instance_id}
        )

    def in_maintenance(self, now: datetime) -> frozenset[UUID | None]:
        """Return the instance ids of the devices in maintenance.

        The id None means that the whole location is in maintenance.
        """
        return frozenset(each.instance_id for each in self.maintenance if each.includes(now))


ALWAYS_OPEN = Schedule()


class DeviceStatus(NamedTuple):
    """The status of a device.

    After its location has opened or its maintenance has ended, a device that is not online yet
    keeps the state ``closed`` or ``maintenance`` for the time ``online_within``.

    Attributes:
        since: the time since which the device has been offline: the latest of the time at which it
            was last seen, the opening of the location, and the end of its last maintenance window.
            None if the device is not offline.
        until: end of the current maintenance window, even if the device is online. None without
            a window.
    """

    state: State
    since: datetime | None = None
    until: datetime | None = None


def status_of(
    schedule: Schedule,
    instance_id: UUID,
    last_seen_at: datetime,
    now: datetime,
    online_within: timedelta,
) -> DeviceStatus:
    """Return the status of a device.

    ``online_within`` is the longest time between two heartbeats of a device that is online.
    """
    windows = schedule.windows_of(instance_id) if schedule.maintenance else ()
    until = max((each.until for each in windows if each.includes(now)), default=None)
    if now - last_seen_at <= online_within:
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
    if now - since > online_within:
        return DeviceStatus("offline", since)
    return DeviceStatus("closed" if opened_at == since else "maintenance")


def describe_period(since: datetime, until: datetime) -> str:
    """Return ``2026-12-01 04:00 to 2026-12-01 06:00 UTC`` for two times in UTC."""
    return f"{since:%Y-%m-%d %H:%M} to {until:%Y-%m-%d %H:%M} UTC"
