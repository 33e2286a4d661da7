"""Opening hours, maintenance windows and time zones of locations, as users set them."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, select, tuple_
from sqlalchemy.orm import Session

from controlplane.devices.locations.opening_hours import OpeningHours, read_hours
from controlplane.devices.locations.status import ALWAYS_OPEN, Maintenance, Schedule
from controlplane.merchant.locations import set_zone, valid_zone
from controlplane.storage.merchant.merchant_tables import Location
from controlplane.storage.monitoring_tables import LocationHours, MaintenanceWindow
from controlplane.storage.statements import in_steps

MAINTENANCE_KEPT: Final = timedelta(days=8)
"""A maintenance window that ended longer ago than this does not affect the status of devices."""
LOCATIONS_AT_ONCE: Final = 200
"""Maximum number of locations in one query."""

LocationKey = tuple[str, str]
"""The ids of an organization and of its location."""


class Schedules(dict[LocationKey, Schedule]):
    """Schedules by location. A location without a schedule is always open."""

    def __missing__(self, _key: LocationKey) -> Schedule:
        return ALWAYS_OPEN


def schedules(
    session: Session, now: datetime, location_keys: Collection[LocationKey] | None = None
) -> Schedules:
    """Return the schedules of these locations, or of all locations if ``location_keys`` is None."""
    if location_keys is None:
        return _schedules(session, now, None)
    result = Schedules()
    for step in in_steps(sorted(set(location_keys)), LOCATIONS_AT_ONCE):
        result.update(_schedules(session, now, step))
    return result


def set_zone_and_hours(
    session: Session,
    location_key: LocationKey,
    zone: str,
    lines: Sequence[str] | None,
    now: datetime,
) -> bool:
    """Set the time zone and the opening hours of a location.

    The opening hours are lines for `read_hours`. None means that the location is always open.
    Returns True if the time zone changed and the sales figures were therefore computed again.

    Raises:
        ValueError: the time zone or the hours are invalid.
    """
    read_hours(zone, lines or ())
    hours = None if lines is None else list(lines)
    session.merge(
        LocationHours(
            organization_id=location_key[0], location_id=location_key[1], opening_hours=hours
        )
    )
    return set_zone(session, location_key, zone, now)


def add_maintenance(
    session: Session, location_key: LocationKey, window: Maintenance, reason: str
) -> None:
    session.add(
        MaintenanceWindow(
            organization_id=location_key[0],
            location_id=location_key[1],
            instance_id=window.instance_id,
            since=window.since,
            until=window.until,
            reason=reason,
        )
    )


def end_maintenance(
    session: Session, location_key: LocationKey, instance_id: UUID | None, now: datetime
) -> int:
    """End the current maintenance windows and cancel the planned ones.

    If ``instance_id`` is None, this applies to the windows that cover the whole location. The
    windows of single devices continue.
    Returns the number of windows that were ended or cancelled.
    """
    windows = session.scalars(
        select(MaintenanceWindow).where(
            MaintenanceWindow.organization_id == location_key[0],
            MaintenanceWindow.location_id == location_key[1],
            MaintenanceWindow.instance_id == instance_id,
            MaintenanceWindow.until > now,
        )
    ).all()
    for row in windows:
        row.since, row.until = min(row.since, now), now
    return len(windows)


def parse_time(text: str, zone: str) -> datetime:
    """Parse an ISO 8601 time. Without a UTC offset, it is in the time zone ``zone``.

    Raises ValueError with a message for users.
    """
    try:
        timestamp = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a date and time such as 2026-12-01T06:00") from error
    local = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=ZoneInfo(zone))
    return local.astimezone(UTC)


def zones(session: Session, location_keys: Collection[LocationKey]) -> Mapping[LocationKey, str]:
    """Return the time zones of these locations. Locations without a valid time zone are missing."""
    columns = (Location.organization_id, Location.id, Location.zone)
    zones_by_location: dict[LocationKey, str] = {}
    for step in in_steps(location_keys):
        rows = session.execute(select(*columns).where(tuple_(*columns[:2]).in_(step)))
        zones_by_location |= {
            (row[0], row[1]): zone for row in rows if (zone := valid_zone(row[2]))
        }
    return zones_by_location


def _schedules(
    session: Session, now: datetime, location_keys: Collection[LocationKey] | None
) -> Schedules:
    hours: dict[LocationKey, OpeningHours] = {}
    windows: dict[LocationKey, list[Maintenance]] = {}
    is_location = (Location.organization_id == LocationHours.organization_id) & (
        Location.id == LocationHours.location_id
    )
    with_zone = select(LocationHours, Location.zone).outerjoin(Location, is_location)
    query = with_zone.where(
        LocationHours.opening_hours.is_not(None), *_in_locations(LocationHours, location_keys)
    )
    for row, zone in session.execute(query):
        lines = row.opening_hours or ()
        hours[row.organization_id, row.location_id] = read_hours(valid_zone(zone) or "UTC", lines)
    recent = MaintenanceWindow.until > now - MAINTENANCE_KEPT
    for maintenance in session.scalars(
        select(MaintenanceWindow).where(recent, *_in_locations(MaintenanceWindow, location_keys))
    ):
        window = Maintenance(maintenance.instance_id, maintenance.since, maintenance.until)
        windows.setdefault((maintenance.organization_id, maintenance.location_id), []).append(
            window
        )
    return Schedules(
        (key, Schedule(hours.get(key), tuple(windows.get(key, ()))))
        for key in hours.keys() | windows.keys()
    )


def _in_locations(
    table: type[LocationHours] | type[MaintenanceWindow],
    location_keys: Collection[LocationKey] | None,
) -> list[ColumnElement[bool]]:
    if location_keys is None:
        return []
    return [tuple_(table.organization_id, table.location_id).in_(location_keys)]
