"""Finds who has fallen silent or has to be heard again, and keeps a row for each silence.

A heartbeat writes nothing of this: the sweep sees silence, and only who comes back ends one.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import Row, Select, insert, select, update
from sqlalchemy.orm import Session

from controlplane.devices.locations.locations import Places, places
from controlplane.devices.locations.status import Place, State, standing
from controlplane.devices.priority import (
    HEARD,
    POSITIONS_A_STEP,
    SILENT,
    UNHEARD,
    Priority,
)
from controlplane.storage.tables import Device
from controlplane.storage.watch_tables import Gap

NOBODY: Final = UUID(int=0)
BY_STATE: Final[Mapping[State, Collection[int]]] = {
    "offline": SILENT,
    "closed": {Priority.CLOSED},
    "maintenance": {Priority.MAINTENANCE},
}

Looked = Row[int, UUID, str, str, datetime, datetime, int]
"""Position, instance, organization, location, last seen, enrolled, priority."""


def note_silence(session: Session, now: datetime, window: timedelta) -> dict[str, set[int]]:
    """Give each silent device its place in the lists. Returns whose is another, by organization."""
    said = places(session, now)
    is_silent = (Device.priority.in_(HEARD), Device.last_seen_at < now - window)
    # Locked, so that none comes back in between: its next heartbeat would not know of the silence.
    query = _devices().where(*is_silent).with_for_update(skip_locked=True)
    fallen = session.execute(query).all()
    _open_gaps(session, fallen)
    changed: dict[str, set[int]] = {}
    moved: dict[int, list[int]] = {}
    for device in (*fallen, *_misplaced(session, said, now, window)):
        priority = _priority(device, said[device.organization_id, device.location_id], now, window)
        if priority != device.priority:
            moved.setdefault(priority, []).append(device.position)
            changed.setdefault(device.organization_id, set()).add(device.position)
    for priority, positions in moved.items():
        _move(session, priority, positions, now - window)
    return changed


def mark_seen(session: Session, positions: Collection[int], now: datetime) -> None:
    """End the silence of these devices."""
    session.execute(
        update(Gap)
        .where(Gap.device.in_(positions), Gap.until.is_(None))
        .values(until=now)
        .execution_options(synchronize_session=False)
    )


def note_break(session: Session, since: datetime, until: datetime) -> None:
    """Note that nobody could be heard: the service was down."""
    session.add(Gap(device=None, since=since, until=until))


def _devices() -> Select[int, UUID, str, str, datetime, datetime, int]:
    return select(
        Device.position,
        Device.instance_id,
        Device.organization_id,
        Device.location_id,
        Device.last_seen_at,
        Device.enrolled_at,
        Device.priority,
    )


def _open_gaps(session: Session, fallen: Sequence[Looked]) -> None:
    for at in range(0, len(fallen), POSITIONS_A_STEP):
        step = fallen[at : at + POSITIONS_A_STEP]
        # An end that was missed must not keep all others from being noted.
        for each in session.scalars(
            select(Gap).where(Gap.device.in_([row.position for row in step]), Gap.until.is_(None))
        ):
            each.until = each.since
        session.flush()
        session.execute(
            insert(Gap), [{"device": row.position, "since": row.last_seen_at} for row in step]
        )


def _misplaced(
    session: Session, said: Places, now: datetime, window: timedelta
) -> Iterable[Looked]:
    """Return the devices that a moment may have moved: their location opened, closed, and so on."""
    groups = session.execute(
        select(Device.organization_id, Device.location_id, Device.priority)
        .where(Device.priority.in_(UNHEARD))
        .distinct()
    )
    found: dict[int, Looked] = {}
    for organization_id, location_id, priority in groups:
        place = said[organization_id, location_id]
        state = standing(place, NOBODY, datetime.min.replace(tzinfo=now.tzinfo), now, window).state
        named = {each.instance_id for each in place.maintenance if each.instance_id}
        query = _devices().where(
            Device.organization_id == organization_id,
            Device.location_id == location_id,
            Device.priority == priority,
        )
        if priority in BY_STATE[state]:
            if not named:
                continue
            query = query.where(Device.instance_id.in_(named))
        found |= {row.position: row for row in session.execute(query)}
    return found.values()


def _priority(device: Looked, place: Place, now: datetime, window: timedelta) -> int:
    found = standing(place, device.instance_id, device.last_seen_at, now, window)
    if found.state == "heard":
        return int(device.priority)  # it has come back, and its heartbeat says so
    if found.state == "offline":
        was_heard = device.last_seen_at > device.enrolled_at
        return Priority.OFFLINE if was_heard else Priority.NEVER_SEEN
    return Priority.CLOSED if found.state == "closed" else Priority.MAINTENANCE


def _move(session: Session, priority: int, positions: list[int], since: datetime) -> None:
    """Move them, but for those that were heard meanwhile."""
    ordered = sorted(positions)
    for at in range(0, len(ordered), POSITIONS_A_STEP):
        session.execute(
            update(Device)
            .where(
                Device.position.in_(ordered[at : at + POSITIONS_A_STEP]),
                Device.priority.in_(HEARD | UNHEARD),
                Device.last_seen_at < since,
            )
            .values(priority=priority)
            .execution_options(synchronize_session=False)
        )
