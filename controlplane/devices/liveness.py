"""Liveness of devices: detects devices that went offline, and stores their offline intervals.

A heartbeat changes the stored liveness only if its device was not online. The periodic evaluation
detects that devices are no longer online, and that their location has opened or closed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, insert, select, tuple_, update
from sqlalchemy.orm import Session

from controlplane.devices.locations.locations import Schedules
from controlplane.devices.locations.status import Schedule, State, status_of
from controlplane.devices.priority import NOT_ONLINE, OFFLINE, ONLINE, Priority
from controlplane.storage.monitoring_tables import OfflineInterval
from controlplane.storage.statements import change_rows, in_steps
from controlplane.storage.tables import Device

NO_DEVICE: Final = UUID(int=0)
"""An instance id that no device has."""
PRIORITIES_BY_STATE: Final[Mapping[State, Collection[int]]] = {
    "offline": OFFLINE,
    "closed": {Priority.CLOSED, Priority.NEVER_CONNECTED},
    "maintenance": {Priority.MAINTENANCE, Priority.NEVER_CONNECTED},
}
"""The priorities of a device that is not online, by state. ``NEVER_CONNECTED`` belongs to all three
states."""

DeviceRow = Row[int, UUID, str, str, datetime, datetime, int]
"""The columns of `_select_devices`: row key, ids of instance, organization and location, times of
the last heartbeat and of the enrollment, and the priority."""


def update_liveness(
    session: Session, by_location: Schedules, now: datetime, online_within: timedelta
) -> dict[str, set[int]]:
    """Begin offline intervals, and update the priority of each device that is not online.

    ``by_location`` are the schedules of all locations. ``online_within`` is the longest time
    between two heartbeats of a device that is online.

    Returns, for each organization id, the row keys (``Device.position``) of the devices whose
    priority changed.
    """
    went_offline = (Device.priority.in_(ONLINE), Device.last_seen_at < now - online_within)
    # The rows are locked, so that no heartbeat is stored between this query and the start of the
    # new interval. Such a heartbeat would not end the interval.
    query = _select_devices().where(*went_offline).with_for_update(skip_locked=True)
    offline = session.execute(query).all()
    _start_intervals(session, offline)
    changed_by_organization: dict[str, set[int]] = {}
    positions_by_priority: dict[int, list[int]] = {}
    for device in (*offline, *_maybe_outdated(session, by_location, now, online_within)):
        schedule = by_location[device.organization_id, device.location_id]
        priority = _priority(device, schedule, now, online_within)
        if priority != device.priority:
            positions_by_priority.setdefault(priority, []).append(device.position)
            changed_by_organization.setdefault(device.organization_id, set()).add(device.position)
    for priority, positions in positions_by_priority.items():
        _set_priority(session, priority, positions, now - online_within)
    return changed_by_organization


def end_offline_intervals(session: Session, positions: Collection[int], now: datetime) -> None:
    """End the offline intervals of the devices with these row keys (``Device.position``)."""
    statement = update(OfflineInterval).where(
        OfflineInterval.device.in_(positions), OfflineInterval.until.is_(None)
    )
    change_rows(session, statement.values(until=now))


def record_service_outage(session: Session, since: datetime, until: datetime) -> None:
    """Store that the service itself was down."""
    session.add(OfflineInterval(device=None, since=since, until=until))


def _select_devices() -> Select[int, UUID, str, str, datetime, datetime, int]:
    return select(
        Device.position,
        Device.instance_id,
        Device.organization_id,
        Device.location_id,
        Device.last_seen_at,
        Device.enrolled_at,
        Device.priority,
    )


def _start_intervals(session: Session, devices: Sequence[DeviceRow]) -> None:
    for step in in_steps(devices):
        still_open = select(OfflineInterval).where(
            OfflineInterval.device.in_([row.position for row in step]),
            OfflineInterval.until.is_(None),
        )
        # If the end of an earlier interval was never stored, set it to the start of that interval.
        # A device can have only one interval without an end.
        for open_interval in session.scalars(still_open):
            open_interval.until = open_interval.since
        session.flush()
        session.execute(
            insert(OfflineInterval),
            [{"device": row.position, "since": row.last_seen_at} for row in step],
        )


def _maybe_outdated(
    session: Session, by_location: Schedules, now: datetime, online_within: timedelta
) -> Iterable[DeviceRow]:
    """Return the devices that are not online and whose stored priority may be out of date.

    For example, their location has opened or their maintenance window has ended since the priority
    was stored.
    """
    group = (Device.organization_id, Device.location_id, Device.priority)
    never_seen = datetime.min.replace(tzinfo=now.tzinfo)
    outdated: list[tuple[str, str, int]] = []
    ids_with_windows: set[UUID] = set()
    query = select(*group).where(Device.priority.in_(NOT_ONLINE)).distinct()
    for organization_id, location_id, priority in session.execute(query):
        schedule = by_location[organization_id, location_id]
        # `status_of` returns the state that devices at this location have if they are not online
        # and have no maintenance window of their own. Devices with such a window are always read.
        state = status_of(schedule, NO_DEVICE, never_seen, now, online_within).state
        if priority in PRIORITIES_BY_STATE[state]:
            ids_with_windows |= {
                each.instance_id for each in schedule.maintenance if each.instance_id
            }
        else:
            outdated.append((organization_id, location_id, priority))
    conditions: list[ColumnElement[bool]] = [
        tuple_(*group).in_(step) for step in in_steps(outdated)
    ]
    conditions += [
        Device.instance_id.in_(step) & Device.priority.in_(NOT_ONLINE)
        for step in in_steps(ids_with_windows)
    ]
    results: dict[int, DeviceRow] = {}
    for condition in conditions:
        rows = session.execute(_select_devices().where(condition))
        results |= {row.position: row for row in rows}
    return results.values()


def _priority(
    device: DeviceRow, schedule: Schedule, now: datetime, online_within: timedelta
) -> int:
    state = status_of(schedule, device.instance_id, device.last_seen_at, now, online_within).state
    if state == "online":
        return int(device.priority)  # its next heartbeat changes the priority
    if device.last_seen_at <= device.enrolled_at:
        return Priority.NEVER_CONNECTED
    if state == "offline":
        return Priority.OFFLINE
    return Priority.CLOSED if state == "closed" else Priority.MAINTENANCE


def _set_priority(session: Session, priority: int, positions: list[int], since: datetime) -> None:
    """Set the priority of these devices. Devices with a heartbeat after ``since`` are left out."""
    for step in in_steps(sorted(positions)):
        statement = update(Device).where(
            Device.position.in_(step),
            Device.priority.in_(ONLINE | NOT_ONLINE),
            Device.last_seen_at < since,
        )
        change_rows(session, statement.values(priority=priority))
