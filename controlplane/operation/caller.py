"""The caller of a request, for every kind of credential: API key, session or OAuth grant."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

from controlplane.storage.account_tables import Role

CredentialKind = Literal["api_key", "session", "oauth"]
NOWHERE: Final = frozenset({""})
"""Access to no location. No location has an empty id, and an empty set means all locations."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request.

    Attributes:
        key_id: the credential: an API key, a session, or the grant of an OAuth token.
        locations: empty for every location of the organization.
        owner_id: the member whose permissions apply, or None for a key without an owner.
        role: the role of the owner.
        permissions_version: that of the owner when the permissions were read.
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
        """The id on the wire: that of the owner, or of a key without an owner."""
        return str(self.owner_id or self.key_id)

    @property
    def asker_id(self) -> UUID:
        """The id for pending requests. They outlive sessions, so it is the user for a session."""
        return self.owner_id if self.kind == "session" and self.owner_id else self.key_id

    def may_visit(self, location_id: str) -> bool:
        return not self.locations or location_id in self.locations

    def may_see(self, organization_id: str, location_id: str) -> bool:
        return organization_id == self.organization_id and self.may_visit(location_id)


def cut(locations: Iterable[str], bounds: Iterable[str]) -> frozenset[str]:
    """Return the intersection. An empty set means all locations."""
    wanted, permitted = frozenset(locations), frozenset(bounds)
    if not wanted or not permitted:
        return wanted or permitted
    return wanted & permitted or NOWHERE
