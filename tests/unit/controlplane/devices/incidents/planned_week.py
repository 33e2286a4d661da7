"""A planned week of faults at several locations, and the incidents that the service should list.

The expected list is computed from the plan alone, without code of the service.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from agent.wire.payloads.history import PATH_CAUSES, Cause, History, Incident

MONDAY: Final = datetime(2026, 11, 9, tzinfo=UTC)
SUNDAY: Final = MONDAY + timedelta(days=7)
DEVICES: Final = 6
"""Number of devices of each location."""
HOUR_S: Final = 3600
WEEK_S: Final = 7 * 24 * HOUR_S


@dataclass(frozen=True, slots=True)
class Fault:
    """An interruption of one device. Times are seconds since the week began, by a correct clock."""

    cause: Cause
    began_s: int
    ended_s: int


@dataclass(frozen=True, slots=True)
class PlannedReport:
    """A report of a device. Times are seconds since the week began, by a correct clock."""

    finished_s: int
    arrived_s: int


@dataclass(slots=True)
class PlannedDevice:
    """A device. Its clock is ``fast_s`` seconds ahead; a negative number means behind.

    ``stays`` has the locations of the device in order of time. Each element is a pair: the time of
    the device's enrollment at a location, in seconds since the week began, and this location.
    """

    name: str
    stays: list[tuple[int, str]]
    fast_s: int
    is_clock_right: bool
    faults: list[Fault] = field(default_factory=list)
    reports: list[PlannedReport] = field(default_factory=list)

    def location_at(self, at_s: int) -> str | None:
        stays = reversed(self.stays)
        return next((location for since_s, location in stays if since_s <= at_s), None)

    def record_at(self, report: PlannedReport) -> History:
        """Return the record that the device reports, by its own clock."""
        incidents = []
        for fault in sorted(self.faults, key=lambda each: each.began_s):
            if fault.began_s <= report.finished_s:
                is_over = fault.ended_s <= report.finished_s
                until_s = min(fault.ended_s, report.finished_s)
                incident = Incident(
                    fault.cause,
                    self.clock_time(fault.began_s),
                    self.clock_time(fault.ended_s) if is_over else None,
                    until_s - fault.began_s,
                    f"{self.name} had {fault.cause}",
                )
                incidents.append(incident)
        return History(self.clock_time(self.stays[0][0]), tuple(incidents))

    def clock_time(self, at_s: int) -> datetime:
        """Return the time of the device's clock, ``at_s`` seconds after the week began."""
        return MONDAY + timedelta(seconds=at_s + self.fast_s)


@dataclass(frozen=True, slots=True)
class ExpectedEntry:
    """An entry of the list. ``members`` are devices with cause, begin and downtime. The downtime is
    None if the interruption has not ended. ``observers`` is the number of devices that are members,
    or whose records cover the begin of the entry.
    """

    location: str
    cause: Cause
    members: tuple[tuple[str, Cause, int, int | None], ...]
    observers: int


def plan_week(locations: int, seed: int) -> list[PlannedDevice]:
    chance = random.Random(seed)
    devices = []
    for location in range(locations):
        location_devices = [
            _device(chance, f"loc-{location:04}", number, locations) for number in range(DEVICES)
        ]
        for _ in range(chance.randint(3, 9)):
            count = chance.choice((1, 1, 2, 3, 5, 6, 6))
            _add_fault(chance, chance.sample(location_devices, count))
        devices += location_devices
    for device in devices:
        device.faults = list(_without_overlaps(device))
        device.reports = list(_reports(chance, device))
    return devices


def arrivals(devices: list[PlannedDevice]) -> list[tuple[PlannedDevice, PlannedReport]]:
    """Return all reports in the order of their arrival."""
    pairs = [(device, report) for device in devices for report in device.reports]
    return sorted(pairs, key=lambda pair: pair[1].arrived_s)


def expected_entries(devices: list[PlannedDevice]) -> list[ExpectedEntry]:
    """Return the entries that the service should list at the end of the week."""
    by_location: dict[str, list[tuple[PlannedDevice, Fault, PlannedReport]]] = {}
    for device in devices:
        for fault in device.faults:
            location = device.location_at(fault.began_s)
            later_reports = [each for each in device.reports if each.finished_s >= fault.began_s]
            if location is not None and later_reports:
                newest = max(later_reports, key=lambda each: each.finished_s)
                by_location.setdefault(location, []).append((device, fault, newest))
    entries = []
    for location, reported in by_location.items():
        remaining = list(reported)
        while remaining:
            first_s = min(fault.began_s for _, fault, _ in remaining)
            group = [each for each in remaining if each[1].began_s - first_s <= 60]
            remaining = [each for each in remaining if each not in group]
            entries.append((first_s, _entry(location, group, first_s, devices)))
    return [entry for _, entry in sorted(entries, key=lambda pair: (-pair[0], pair[1].location))]


def _entry(
    location: str,
    group: list[tuple[PlannedDevice, Fault, PlannedReport]],
    first_s: int,
    devices: list[PlannedDevice],
) -> ExpectedEntry:
    device_counts = {
        cause: len({device.name for device, fault, _ in group if fault.cause == cause})
        for cause in PATH_CAUSES
    }
    most = max(device_counts.values())
    common_cause = next(cause for cause in PATH_CAUSES if device_counts[cause] == most)
    observers = {device.name for device, _, _ in group}
    for device in devices:
        if device.location_at(first_s) == location and any(
            _covers(device, report, first_s) for report in device.reports
        ):
            observers.add(device.name)
    members = tuple(
        sorted(
            (
                device.name,
                fault.cause,
                fault.began_s,
                fault.ended_s - fault.began_s if fault.ended_s <= newest.finished_s else None,
            )
            for device, fault, newest in group
        )
    )
    return ExpectedEntry(location, common_cause, members, len(observers))


def _covers(device: PlannedDevice, report: PlannedReport, at_s: int) -> bool:
    """Return whether a report certainly covers a time.

    The service detects a clock that is ahead. It cannot distinguish a report of a device whose
    clock is behind from a report that arrived late. Therefore, if the clock is behind, the service
    lets the record end at the time that this clock had when the report was finished.
    """
    end_s = report.finished_s - max(0, -device.fast_s)
    return device.stays[0][0] <= at_s <= end_s


def _device(chance: random.Random, location: str, number: int, locations: int) -> PlannedDevice:
    began_s = chance.choice((0, 0, 0, chance.randrange(2 * 24 * HOUR_S)))
    stays = [(began_s, location)]
    if chance.random() < 0.08:
        moved_s = chance.randrange(3 * 24 * HOUR_S, 5 * 24 * HOUR_S)
        stays.append((moved_s, f"loc-{chance.randrange(locations):04}"))
    fast_s = chance.choice((0,) * 8 + (2 * HOUR_S + 17, -3 * HOUR_S - 5))
    return PlannedDevice(f"{location}-till-{number}", stays, fast_s, is_clock_right=not fast_s)


def _add_fault(chance: random.Random, devices: list[PlannedDevice]) -> None:
    """Add a fault of all ``devices`` at about the same time. The causes of some devices differ."""
    cause, began_s = chance.choice(PATH_CAUSES), chance.randrange(WEEK_S)
    spread_s, length_s = chance.choice((0, 20, 59, 60, 61, 90)), chance.randint(5, 4 * HOUR_S)
    for device in devices:
        device_cause = cause if chance.random() < 0.8 else chance.choice(PATH_CAUSES)
        first_s = began_s + chance.choice((0, spread_s, chance.randint(0, spread_s)))
        device.faults.append(Fault(device_cause, first_s, first_s + length_s))


def _without_overlaps(device: PlannedDevice) -> Iterator[Fault]:
    """Yield the faults that begin at least ten minutes after the end of the previous one.

    The agent records one interruption at a time.
    """
    free_s = 0
    for fault in sorted(device.faults, key=lambda each: each.began_s):
        if fault.began_s >= free_s:
            yield fault
            free_s = fault.ended_s + 600


def _reports(chance: random.Random, device: PlannedDevice) -> Iterator[PlannedReport]:
    """Yield the reports of a device. Some arrive hours late, after newer ones; some are repeated.

    Some devices send no reports in the last two days.
    """
    first_s = device.stays[0][0]
    last_s = chance.choice((WEEK_S,) * 5 + (5 * 24 * HOUR_S,))
    for _ in range(chance.randint(3, 7)):
        finished_s = chance.randrange(first_s, max(last_s, first_s + 1))
        delay_s = chance.choice((0, 0, 3, 45, 7 * HOUR_S)) if device.is_clock_right else 0
        if finished_s + delay_s <= WEEK_S:
            report = PlannedReport(finished_s, finished_s + delay_s)
            yield report
            if chance.random() < 0.2:
                yield report
