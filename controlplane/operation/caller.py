"""Who is calling: what every credential, an API key, a session or an OAuth grant, stands for."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

from controlplane.storage.account_tables import Role

CredentialKind = Literal["api_key", "session", "oauth"]
NOWHERE: Final = frozenset({""})
"""The locations of who may go to none: no location's id is empty, and no locations mean all."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking. ``locations`` empty means every location of the organization.

    ``key_id`` names the credential: an API key, a session, or the grant of an OAuth token.
    ``owner_id`` and ``role`` are the member's as whom it acts, None for a key without an owner;
    ``permissions_version`` is the owner's (`controlplane.storage.account_tables.User`) when the
    rest was read.
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
        """Who it is on the wire: the person, or the key itself where it is nobody's."""
        return str(self.owner_id or self.key_id)

    @property
    def asker_id(self) -> UUID:
        """What outlives the call: sessions end with the sign-out, pending requests do not."""
        return self.owner_id if self.kind == "session" and self.owner_id else self.key_id

    def may_visit(self, location_id: str) -> bool:
        return not self.locations or location_id in self.locations


def cut(locations: Iterable[str], bounds: Iterable[str]) -> frozenset[str]:
    """Return what is in both; in either, none stands for all of them."""
    asked, permitted = frozenset(locations), frozenset(bounds)
    if not asked or not permitted:
        return asked or permitted
    return asked & permitted or NOWHERE
