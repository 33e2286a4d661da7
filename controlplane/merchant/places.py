"""What operators call an organization and its locations, and on whose clock a location lives.

`Location` is the one place of a location's name. Its zone is written here only: into it, and beside
the opening hours (`LocationHours`), which locations without sales have, too.
"""

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.merchant.zones import set_zone
from controlplane.storage.merchant.merchant_tables import NO_CURRENCY, Location, Organization
from controlplane.storage.watch_tables import LocationHours

At = tuple[str, str]
"""Organization and location."""


def name_organization(session: Session, organization_id: str, name: str, now: datetime) -> None:
    row = session.get(Organization, organization_id)
    if row is None:
        row = Organization(id=organization_id, name=name, created_at=now)
        session.add(row)
    row.name = name


def name_location(session: Session, at: At, name: str, now: datetime) -> None:
    """Name it, whether or not anything is sold there."""
    row = _location(session, at)
    if row is not None:
        row.name = name
        return
    if session.get(Organization, at[0]) is None:
        name_organization(session, at[0], at[0], now)
    hours = session.get(LocationHours, at)
    row = Location(
        organization_id=at[0],
        id=at[1],
        name=name,
        zone=None if hours is None else hours.time_zone,
        currency=NO_CURRENCY,
        created_at=now,
    )
    session.add(row)


def change_zone(session: Session, at: At, zone: str) -> bool:
    """Change the time zone of a location. Returns whether hours of its sales changed."""
    hours = session.get(LocationHours, at)
    if hours is not None:
        hours.time_zone = zone
    row = _location(session, at)
    if row is None or row.zone == zone:
        return False
    set_zone(session, row.position, zone)
    return row.currency != NO_CURRENCY


def _location(session: Session, at: At) -> Location | None:
    query = select(Location).where(Location.organization_id == at[0], Location.id == at[1])
    return session.scalars(query).first()
