"""Messages of sign-in, sign-out and the profile, and the fields that other messages share."""

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from agent.wire.base import Array, Exact, MaxItems, Tolerant, Uuid
from agent.wire.text import LocationId
from controlplane.accounts.passwords import PASSWORD_MAX
from controlplane.accounts.users import EMAIL_MAX
from controlplane.operation.storable_text import NAME_MAX, STORABLE
from controlplane.storage.account_tables import Role

LOCATIONS_OF_A_KEY_MAX = 500
Email = Annotated[str, StringConstraints(min_length=1, max_length=EMAIL_MAX)]
Password = Annotated[str, StringConstraints(min_length=1, max_length=PASSWORD_MAX * 2)]
"""A longer password is refused before it is hashed. The limit is more than `PASSWORD_MAX`, because
normalization can make a password shorter.
"""
Locations = Annotated[
    tuple[Annotated[LocationId, *STORABLE], ...], MaxItems(LOCATIONS_OF_A_KEY_MAX)
]


class SignInRequest(Exact):
    email: Email
    password: Password


class SignOutReply(Tolerant):
    signed_out: bool


class UserRecord(Tolerant):
    id: Uuid
    email: str
    name: str


class OrganizationRecord(Tolerant):
    """``name`` is null if there is no name. An empty ``locations`` means all locations."""

    id: str
    name: str | None
    role: Role
    locations: Array[str]


class SignInReply(Tolerant):
    """``organization_id`` is the organization of the session."""

    session_id: Uuid
    user: UserRecord
    organization_id: str
    organizations: Array[OrganizationRecord]


class SessionRecord(Tolerant):
    """A session of the user.

    ``user_agent`` and ``address`` describe the client at sign-in. They are not verified.
    ``is_this`` is true for the session of the call.
    """

    id: Uuid
    organization_id: str
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime
    user_agent: str
    address: str
    is_this: bool


class KeyRecord(Tolerant):
    """``hint`` is the end of the key. An empty ``locations`` means all locations of its user."""

    id: Uuid
    name: str
    hint: str
    can_write: bool
    locations: Array[str]
    created_at: datetime
    last_used_at: datetime | None


class ProfileReply(Tolerant):
    user: UserRecord
    organization_id: str
    organizations: Array[OrganizationRecord]
    sessions: Array[SessionRecord]
    keys: Array[KeyRecord]


class SessionEndRequest(Exact):
    session_id: Uuid


class EndReply(Tolerant):
    ended: bool


class KeyCreateRequest(Exact):
    """A new API key.

    Attributes:
        locations: empty means all locations that the user of the key has, now and in the future.
        expires_unused: whether the key is revoked if it was not used within an hour.
    """

    name: Annotated[str, Field(min_length=1, max_length=NAME_MAX), *STORABLE]
    can_write: bool
    locations: Locations
    expires_unused: bool = False


class KeyCreateReply(Tolerant):
    """``secret`` is the key itself, which is not stored and not shown again."""

    key: KeyRecord
    secret: str


class KeyRevokeRequest(Exact):
    key_id: Uuid


class KeyDevicesRequest(Exact):
    key_id: Uuid


class KeyDeviceRecord(Tolerant):
    instance_id: Uuid
    name: str
    location_id: str


class KeyDevicesReply(Tolerant):
    """The devices that enrolled with a key. ``is_revoked`` is true if the key is revoked."""

    is_revoked: bool
    devices: Array[KeyDeviceRecord]


class RevokeReply(Tolerant):
    revoked: bool


class ChooseOrganizationRequest(Exact):
    organization_id: Annotated[str, Field(min_length=1, max_length=128), *STORABLE]


class ChooseOrganizationReply(Tolerant):
    organization_id: str


class GrantRecord(Tolerant):
    """The consent of a user to an OAuth client.

    Attributes:
        client_name: the name that the client registered.
        client_hosts: hosts of the client's redirect URIs. Empty for a program on the user's
            computer, and for a client that is no longer registered.
    """

    id: Uuid
    organization_id: str
    client_name: str
    client_hosts: Array[str]
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime


class GrantsReply(Tolerant):
    grants: Array[GrantRecord]


class GrantEndRequest(Exact):
    grant_id: Uuid
