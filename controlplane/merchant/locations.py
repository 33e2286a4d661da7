"""Sets the names of organizations and locations, and the time zones of locations.

The table `Location` has one name and one time zone for each location. They apply to the devices and
to the sales of the location. Only this module changes names and time zones.
"""

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from controlplane.figures.local_time import clock_of, offsets
from controlplane.merchant.rebuild import rebuild
from controlplane.storage.merchant.columns import MICROSECOND, microseconds
from controlplane.storage.merchant.merchant_tables import NO_CURRENCY, Location, Organization
from controlplane.storage.merchant.sales_tables import Refund, Sale

HOUR_US: Final = timedelta(hours=1) // MICROSECOND
LocationKey = tuple[str, str]
"""The ids of an organization and of a location in it."""


def name_organization(session: Session, organization_id: str, name: str, now: datetime) -> None:
    """Set the name of an organization. Creates the row of the organization if it is missing."""
    row = session.get(Organization, organization_id)
    if row is None:
        row = Organization(id=organization_id, name=name, created_at=now)
        session.add(row)
    row.name = name


def name_location(session: Session, location_key: LocationKey, name: str, now: datetime) -> None:
    """Set the name of a location. Creates the row of the location if it is missing."""
    if session.get(Organization, location_key[0]) is None:
        name_organization(session, location_key[0], location_key[0], now)
    _lock_location(session, location_key, now).name = name


def set_zone(session: Session, location_key: LocationKey, zone: str | None, now: datetime) -> bool:
    """Set the time zone of a location. ``zone`` is an IANA name, or None for no time zone.

    If the zone differs from the stored one, the rollups of the location and the local hours of its
    sales and refunds are computed again.

    Returns:
        True if the zone changed and the location has a currency. A location without a currency has
        no figures.
    """
    location = _lock_location(session, location_key, now)
    if location.zone == zone:
        return False
    location.zone = zone
    session.flush()
    for column in (Sale.initiated_at, Refund.refunded_at):
        table = column.class_
        first, last = session.execute(
            select(func.min(column), func.max(column)).where(table.location == location.position)
        ).one()
        if first is None or last is None:
            continue
        change = text(
            f"UPDATE {table.__tablename__} SET local_hour = ({column.key} + :shift) / {HOUR_US}"
            f" WHERE location = :location AND {column.key} >= :start AND {column.key} < :end"
        )
        for start, end, offset in offsets(clock_of(zone).zone, first, last + MICROSECOND):
            session.execute(
                change,
                {
                    "shift": offset // MICROSECOND,
                    "location": location.position,
                    "start": microseconds(start),
                    "end": microseconds(end),
                },
            )
    rebuild(session, location.position)
    return location.currency != NO_CURRENCY


def valid_zone(zone: str | None) -> str | None:
    """Return the name of a time zone, or None if it is missing or invalid."""
    clock = clock_of(zone)
    return None if clock.fell_back else clock.name


def _lock_location(session: Session, location_key: LocationKey, now: datetime) -> Location:
    """Lock and return the row of a location. If it is missing, create it without a currency."""
    query = select(Location).where(
        Location.organization_id == location_key[0], Location.id == location_key[1]
    )
    row = session.scalars(query.with_for_update()).first()
    if row is None:
        row = Location(
            organization_id=location_key[0],
            id=location_key[1],
            currency=NO_CURRENCY,
            created_at=now,
        )
        session.add(row)
        session.flush()
    return row
