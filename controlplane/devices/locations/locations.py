"""What operators said of locations: their hours, and when somebody works on them."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import ColumnElement, select, tuple_
from sqlalchemy.orm import Session

from controlplane.devices.locations.opening_hours import OpeningHours, read_hours
from controlplane.devices.locations.status import ALWAYS_OPEN, Maintenance, Place
from controlplane.storage.watch_tables import LocationHours, MaintenanceWindow

REMEMBERED: Final = timedelta(days=8)
"""How long after its end maintenance still explains a silence."""
PLACES_A_STEP: Final = 200

At = tuple[str, str]
"""Organization and location."""


class Places(dict[At, Place]):
    """Those of which something was said; all others are always open."""

    def __missing__(self, _key: At) -> Place:
        return ALWAYS_OPEN


def places(session: Session, now: datetime, at: Collection[At] | None = None) -> Places:
    """Read what was said of these locations; None for all."""
    if at is None:
        return _places(session, now, None)
    found, wanted = Places(), sorted(set(at))
    for first in range(0, len(wanted), PLACES_A_STEP):
        found.update(_places(session, now, wanted[first : first + PLACES_A_STEP]))
    return found


def set_location(session: Session, at: At, zone: str, lines: Sequence[str] | None) -> None:
    """Say when a location is open; None is always. Raises ValueError for hours that are none."""
    read_hours(zone, lines or ())
    row = session.get(LocationHours, at)
    if row is None:
        row = LocationHours(organization_id=at[0], location_id=at[1])
        session.add(row)
    row.time_zone = zone
    row.opening_hours = None if lines is None else list(lines)


def add_maintenance(session: Session, at: At, window: Maintenance, reason: str) -> None:
    session.add(
        MaintenanceWindow(
            organization_id=at[0],
            location_id=at[1],
            instance_id=window.instance_id,
            since=window.since,
            until=window.until,
            reason=reason,
        )
    )


def end_maintenance(session: Session, at: At, instance_id: UUID | None, now: datetime) -> int:
    """End what goes on, and forget what was to come. Returns how many windows."""
    found = session.scalars(
        select(MaintenanceWindow).where(
            MaintenanceWindow.organization_id == at[0],
            MaintenanceWindow.location_id == at[1],
            MaintenanceWindow.instance_id == instance_id,
            MaintenanceWindow.until > now,
        )
    ).all()
    for row in found:
        row.since, row.until = min(row.since, now), now
    return len(found)


def zones(session: Session, at: Collection[At]) -> Mapping[At, str]:
    """Return the time zones of those that have one."""
    query = select(LocationHours).where(_is_at(LocationHours, at))
    return {(row.organization_id, row.location_id): row.time_zone for row in session.scalars(query)}


def _places(session: Session, now: datetime, at: Collection[At] | None) -> Places:
    hours: dict[At, OpeningHours] = {}
    windows: dict[At, list[Maintenance]] = {}
    query, said = select(LocationHours), select(MaintenanceWindow)
    if at is not None:
        query, said = (
            query.where(_is_at(LocationHours, at)),
            said.where(_is_at(MaintenanceWindow, at)),
        )
    for row in session.scalars(query.where(LocationHours.opening_hours.is_not(None))):
        place = (row.organization_id, row.location_id)
        hours[place] = read_hours(row.time_zone, row.opening_hours or ())
    for each in session.scalars(said.where(MaintenanceWindow.until > now - REMEMBERED)):
        window = Maintenance(each.instance_id, each.since, each.until)
        windows.setdefault((each.organization_id, each.location_id), []).append(window)
    return Places(
        (each, Place(hours.get(each), tuple(windows.get(each, ()))))
        for each in hours.keys() | windows.keys()
    )


def _is_at(
    table: type[LocationHours] | type[MaintenanceWindow], at: Collection[At]
) -> ColumnElement[bool]:
    return tuple_(table.organization_id, table.location_id).in_(at)
