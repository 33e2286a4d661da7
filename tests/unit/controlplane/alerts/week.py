"""A simulated week of a fleet, with every heartbeat of each device.

The week is used to test the service's code for alerts, so this module does not use that code. From
the service, it imports only opening hours and maintenance.
"""

import random
import uuid
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

from controlplane.devices.locations.opening_hours import read_hours
from controlplane.devices.locations.status import Maintenance, Schedule
from tests.sizes import amount

BEGINS = datetime(2026, 10, 22, tzinfo=UTC)
"""A Thursday. On the following Sunday, daylight saving time ends in Europe."""
DAYS = 7
SECONDS = DAYS * 86400
STABLE_END_S = 4 * 3600
"""Problems end about this long before the end of the week, so that every alert resolves."""
HEARTBEAT_S = 60
DEVICES = amount(medium=100, large=500)

ZONES = ("Europe/Riga", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC")
HOURS = (
    ("Mon-Fri 08:00-22:00", "Sat 10:00-02:00"),
    ("Mon-Sun 07:30-23:15",),
    ("Mon-Thu 11:00-23:00", "Fri-Sat 11:00-04:00", "Sun 12:00-20:00"),
    ("Mon-Sun 17:00-03:30",),
)

Stretch = tuple[float, float]
"""Start and end, in seconds since ``BEGINS``."""


@dataclass
class WeekDevice:
    """A simulated device.

    It sends no heartbeats during ``downs``, its reports have faults during ``broken``, and it is in
    maintenance during ``maintenance``. Heartbeats are sent ``phase`` seconds after a full minute.
    """

    instance_id: UUID
    phase: float
    downs: list[Stretch] = field(default_factory=list)
    broken: list[Stretch] = field(default_factory=list)
    maintenance: list[Stretch] = field(default_factory=list)

    def heartbeats(self, service_downs: list[Stretch]) -> list[float]:
        """Return the times of the heartbeats, in seconds since ``BEGINS``.

        The first heartbeat is before the week begins.
        """
        heartbeats, at = [], self.phase - HEARTBEAT_S
        for start, end in (*sorted(self.downs + service_downs), (SECONDS, SECONDS)):
            while at < start:
                heartbeats.append(at)
                at += HEARTBEAT_S
            while at < end:
                at += HEARTBEAT_S
        return heartbeats


@dataclass
class WeekLocation:
    """A simulated location. ``maintenance`` contains windows that apply to all its devices."""

    name: str
    zone: str
    lines: tuple[str, ...]
    """Opening hours; empty means always open."""
    devices: list[WeekDevice]
    maintenance: list[Stretch] = field(default_factory=list)

    def schedule(self) -> Schedule:
        windows = [(None, each) for each in self.maintenance]
        windows += [
            (device.instance_id, each) for device in self.devices for each in device.maintenance
        ]  # type: ignore[misc]
        return Schedule(
            read_hours(self.zone, self.lines) if self.lines else None,
            tuple(
                Maintenance(instance_id, time_at(start), time_at(end))
                for instance_id, (start, end) in windows
            ),
        )


@dataclass
class Week:
    """A simulated week. The service does not run during ``service_downs``."""

    locations: list[WeekLocation]
    service_downs: list[Stretch]

    def ticks(self, step_s: int) -> Iterator[float]:
        """Yield the times at which the service runs and evaluates alerts."""
        for at in range(0, SECONDS, step_s):
            if not any(start <= at < end for start, end in self.service_downs):
                yield at


def time_at(at: float) -> datetime:
    return BEGINS + timedelta(seconds=at)


def last_at_each(heartbeats: list[float], ticks: list[float]) -> list[float]:
    """Return for each tick the time of the last heartbeat at or before the tick."""
    return [heartbeats[bisect_right(heartbeats, at) - 1] for at in ticks]


def simulated_week(seed: int) -> Week:
    """Return a week with offline devices, faults, power cuts, maintenance and service outages."""
    chance = random.Random(seed)
    sizes = [1, 2, 3, 4]
    while sum(sizes) < DEVICES - 24:
        sizes.append(chance.randint(6, 24))
    sizes.append(DEVICES - sum(sizes))
    locations = [_location(chance, index, size) for index, size in enumerate(sizes)]
    devices = [device for location in locations for device in location.devices]
    for device in devices:
        _add_problems(chance, device)
    for location in chance.sample(locations[4:], 6):
        _add_power_cut(chance, location)
    _add_power_flaps(chance, locations[5])
    for location in chance.sample(locations, 5):
        start = chance.uniform(0, SECONDS - STABLE_END_S - 6 * 3600)
        location.maintenance.append((start, start + chance.uniform(600, 6 * 3600)))
        for device in location.devices:
            if chance.random() < 0.7:
                device.downs.append((start + 60, start + chance.uniform(120, 7 * 3600)))
    service_downs = [(1.7 * 86400, 1.7 * 86400 + 2400), (4.2 * 86400, 4.2 * 86400 + 45)]
    return Week(locations, service_downs)


def _location(chance: random.Random, index: int, size: int) -> WeekLocation:
    lines = HOURS[index % len(HOURS)] if index % 3 else ()
    devices = [
        WeekDevice(uuid.UUID(int=chance.getrandbits(128)), chance.uniform(0, HEARTBEAT_S))
        for _ in range(size)
    ]
    location = WeekLocation(f"loc-{index:04}", ZONES[index % len(ZONES)], lines, devices)
    if index % 4 == 2:
        for device in devices:
            _switch_off_at_night(chance, device)
    return location


def _add_problems(chance: random.Random, device: WeekDevice) -> None:
    """Add offline times, faulty reports and maintenance to the device, at random."""
    kind = chance.random()
    until = SECONDS - STABLE_END_S
    if kind < 0.25:
        for _ in range(chance.randint(1, 4)):
            start = chance.uniform(0, until - 600)
            device.downs.append((start, min(until, start + chance.expovariate(1 / 1800))))
    elif kind < 0.35:  # flaps for some hours
        at = chance.uniform(0, until - 6 * 3600)
        for _ in range(chance.randint(3, 12)):
            down, up = chance.uniform(200, 1500), chance.uniform(90, 1500)
            device.downs.append((at, min(until, at + down)))
            at += down + up
    elif kind < 0.40:  # offline for days
        start = chance.uniform(0, 3 * 86400)
        device.downs.append((start, start + chance.uniform(86400, 3 * 86400)))
    if chance.random() < 0.15:
        for _ in range(chance.randint(1, 3)):
            start = chance.uniform(0, until - 86400)
            device.broken.append((start, start + chance.expovariate(1 / 7200)))
    if chance.random() < 0.08:
        start = chance.uniform(0, until - 4 * 3600)
        device.maintenance.append((start, start + chance.uniform(900, 4 * 3600)))
        device.downs.append((start + 120, start + chance.uniform(200, 4.1 * 3600)))


def _switch_off_at_night(chance: random.Random, device: WeekDevice) -> None:
    """Switch the device off for five hours after midnight UTC, on each day except the last."""
    for day in range(DAYS - 1):
        start = day * 86400 + chance.uniform(0, 1200)
        device.downs.append((start, start + 5 * 3600 + chance.uniform(0, 600)))


def _add_power_cut(chance: random.Random, location: WeekLocation) -> None:
    start = chance.uniform(3600, SECONDS - STABLE_END_S - 5 * 3600)
    length = chance.uniform(300, 4 * 3600)
    for device in location.devices:
        if chance.random() < 0.95:  # the remaining devices have a battery
            device.downs.append((start, start + length + chance.uniform(0, 400)))


def _add_power_flaps(chance: random.Random, location: WeekLocation) -> None:
    """Switch all devices of the location off for ten minutes, five times within two hours."""
    at = 2.5 * 86400
    for _ in range(5):
        for device in location.devices:
            device.downs.append((at, at + 600 + chance.uniform(0, 50)))
        at += 1250
