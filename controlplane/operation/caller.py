"""The caller of a request, for every kind of credential: API key, session or OAuth grant."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal
from uuid import UUID

from sqlalchemy import ColumnElement, and_

from controlplane.storage.account_tables import Role

CredentialKind = Literal["api_key", "session", "oauth"]
NOWHERE: Final = frozenset({""})
"""The ``locations`` of a caller that has access to no location. No location has an empty id. The
empty set cannot be used, because it means all locations."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request.

    Attributes:
        key_id: id of the credential: an API key, a session, or the grant of an OAuth token. When
            the pending request of a user is dispatched, it is the id of the user.
        locations: ids of the accessible locations. Empty for every location of the organization.
        owner_id: the member whose permissions apply, or None for a key without an owner.
        role: the role of the owner.
        permissions_version: version of the owner's permissions when they were read.
    """

    key_id: UUID
    organization_id: str
    can_write: bool
    locations: frozenset[str] = frozenset()
    kind: CredentialKind = "api_key"
    owner_id: UUID | None = None
    role: Role | None = None
    permissions_version: int = 0

    @property
    def user_id(self) -> str:
        """The user id on the wire: the id of the owner, or of the key if it has no owner."""
        return str(self.owner_id or self.key_id)

    @property
    def session_user_id(self) -> UUID:
        """The signed-in user. Only for the caller of a session."""
        assert self.owner_id is not None  # noqa: S101 - a session has a user
        return self.owner_id

    @property
    def requester_id(self) -> UUID:
        """The id that pending requests store for their creator.

        For a session it is the id of its user, because pending requests outlive sessions.
        """
        return self.owner_id if self.kind == "session" and self.owner_id else self.key_id

    def has_access_to(self, location_id: str) -> bool:
        return not self.locations or location_id in self.locations

    def may_see(self, organization_id: str, location_id: str) -> bool:
        return organization_id == self.organization_id and self.has_access_to(location_id)

    def visible(self, table: Any) -> ColumnElement[bool]:
        """Return the SQL condition for the rows of ``table`` that `may_see` accepts."""
        own: ColumnElement[bool] = table.organization_id == self.organization_id
        return and_(own, table.location_id.in_(self.locations)) if self.locations else own


def intersect_locations(locations: Iterable[str], bounds: Iterable[str]) -> frozenset[str]:
    """Return the locations that are in both sets, or `NOWHERE` if there is none.

    An empty set in ``locations`` or ``bounds`` means all locations.
    """
    chosen_locations, permitted_locations = frozenset(locations), frozenset(bounds)
    if not chosen_locations or not permitted_locations:
        return chosen_locations or permitted_locations
    return chosen_locations & permitted_locations or NOWHERE
