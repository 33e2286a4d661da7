"""Names of organizations and locations, for devices and sales."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus

from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.accounts.messages import OrganizationRecord
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import Refusal
from controlplane.operation.records import record_of
from controlplane.storage.account_tables import Membership
from controlplane.storage.merchant.merchant_tables import Location, Organization
from controlplane.storage.monitoring_tables import LocationHours
from controlplane.storage.statements import in_steps
from controlplane.storage.tables import ApiKey, Device


@dataclass(frozen=True, slots=True)
class Names:
    """Names by id. None means that there is no name."""

    organizations: dict[str, str] = field(default_factory=dict)
    locations: dict[tuple[str, str], str | None] = field(default_factory=dict)

    def organization(self, organization_id: str) -> str | None:
        return self.organizations.get(organization_id)

    def location(self, organization_id: str, location_id: str) -> str | None:
        return self.locations.get((organization_id, location_id))


def names_of(session: Session, location_keys: Iterable[tuple[str, str]]) -> Names:
    """Return the names of these locations and of their organizations.

    Each element of ``location_keys`` is a pair: the ids of an organization and of one of its
    locations.
    """
    sorted_keys = sorted(set(location_keys))
    if not sorted_keys:
        return Names()
    organizations = {organization for organization, _ in sorted_keys}
    locations = {}
    ids = sorted({location for _, location in sorted_keys})
    for step in in_steps(ids):
        query = select(Location.organization_id, Location.id, Location.name).where(
            Location.organization_id.in_(organizations), Location.id.in_(step)
        )
        locations.update({(row[0], row[1]): row[2] for row in session.execute(query)})
    return Names(names_of_organizations(session, organizations), locations)


def names_of_organizations(session: Session, ids: Collection[str]) -> dict[str, str]:
    query = select(Organization.id, Organization.name).where(Organization.id.in_(ids))
    return {row.id: row.name for row in session.execute(query)}


def known_locations(session: Session, organization_id: str) -> dict[str, str | None]:
    """Return the names of the locations of an organization, by id, in the order of their ids.

    A location is known if it has a name, sales, opening hours, a device, or an API key that the
    operator created for it.
    """
    key_locations = select(ApiKey.locations).filter_by(
        organization_id=organization_id, owner_id=None, revoked_at=None
    )
    names: dict[str, str | None] = dict.fromkeys(
        each for locations in session.scalars(key_locations) for each in locations
    )
    for column, table in ((Device.location_id, Device), (LocationHours.location_id, LocationHours)):
        ids = select(column).where(table.organization_id == organization_id).distinct()
        names.update(dict.fromkeys(session.scalars(ids)))
    query = select(Location.id, Location.name).filter_by(organization_id=organization_id)
    names.update({row[0]: row[1] for row in session.execute(query)})
    return dict(sorted(names.items()))


def require_known(context: RequestContext, ids: Iterable[str]) -> None:
    """Refuse ids of locations that the caller's organization does not have."""
    if location_ids := sorted(set(ids)):
        existing_ids = known_locations(context.session, context.organization_id)
        if unknown := [each for each in location_ids if each not in existing_ids]:
            detail = f"there is no location {', '.join(unknown)}"
            raise Refusal(HTTPStatus.NOT_FOUND, "location_not_found", detail)


def organization_records(
    session: Session, memberships: Collection[Membership]
) -> tuple[OrganizationRecord, ...]:
    names = names_of_organizations(session, {each.organization_id for each in memberships})
    return tuple(
        record_of(
            OrganizationRecord,
            each,
            id=each.organization_id,
            name=names.get(each.organization_id),
        )
        for each in memberships
    )
