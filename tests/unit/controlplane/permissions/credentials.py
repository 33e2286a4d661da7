"""Credentials of every kind, valid and invalid, and the objects that belong to them."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy.orm import Session

from controlplane.accounts import sessions, users
from controlplane.accounts.keys import key_store
from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.accounts.members import invitations
from controlplane.accounts.oauth import grants
from controlplane.accounts.oauth.secrets import ACCESS, REFRESH, new_secret
from controlplane.accounts.passwords import hasher
from controlplane.retail.credentials import clients, signing_keys
from controlplane.storage.account_tables import Invitation, Role, SignInSession
from controlplane.storage.oauth_tables import OAuthCode
from tests.unit.controlplane.accounts.people import MEMORY_KIB, PASSES, PASSWORD
from tests.unit.controlplane.permissions.organizations import (
    ORGANIZATION_AT,
    EnrolledDevice,
    Enroller,
    LocationObjects,
)
from tests.unit.controlplane.permissions.permission_tables import TARGETS, Target

ROLES: Final[tuple[Role, ...]] = ("owner", "manager", "viewer")
ORIGIN: Final = "http://service"
PASSWORD_HASH: Final = hasher(MEMORY_KIB, PASSES).hash(PASSWORD)
LONG_AGO: Final = timedelta(days=40)
NO_ACCESS: Final = "none, invalid, ended"
Headers = dict[str, str]


@dataclass(frozen=True, slots=True)
class UserObjects:
    """The ids of a user, and of a session, key, grant and invitation that this user can end."""

    user_id: UUID
    invitation_id: UUID

    session_id: UUID
    key_id: UUID
    grant_id: UUID


@dataclass(frozen=True, slots=True)
class Credential:
    """A credential, and the objects that belong to it.

    Args:
        column: The column of ``permission_tables.OPERATIONS`` for this credential.
        is_restricted: Whether the credential is restricted to one location.
        key_id: The id of the API key or session; None for other kinds of credential.
        owned: For a session: the objects that its user can end; None for other kinds of credential.
        devices: Devices that were enrolled with this credential, one for each target.
    """

    name: str
    column: str
    headers: Headers
    is_restricted: bool = False
    key_id: UUID | None = None
    owned: UserObjects | None = None
    devices: Mapping[Target, EnrolledDevice] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CredentialMaker:
    """Creates users, credentials, and the objects that belong to them.

    Methods with the parameter ``ago`` create a session, grant or access token that is this old.
    """

    session: Session
    objects_by_target: Mapping[Target, LocationObjects]
    enroller: Enroller
    now: datetime

    @property
    def own_location(self) -> Sequence[str]:
        return (self.objects_by_target["own"].location_id,)

    def add_user(
        self, role: Role, locations: Sequence[str] = (), organization: str = DEFAULT_ORGANIZATION
    ) -> UUID:
        email = f"{uuid.uuid4()}@example.com"
        user = users.add_user(
            self.session, email=email, name="Ada", password_hash=PASSWORD_HASH, now=self.now
        )
        users.set_membership(
            self.session, user.id, organization, role=role, locations=locations, now=self.now
        )
        return user.id

    def key(
        self,
        *,
        can_write: bool,
        locations: Sequence[str] = (),
        owner: UUID | None = None,
        organization: str = DEFAULT_ORGANIZATION,
    ) -> tuple[UUID, Headers]:
        """Create an API key. Return its id, and the headers that contain the key."""
        key = key_store.new_key(name="test", locations=locations)
        key_store.add_keys(
            self.session, [key], can_write=can_write, organization_id=organization,
            now=self.now, owner_id=owner,
        )  # fmt: skip
        return key.id, bearer(key.secret)

    def sign_in(
        self, user: UUID, organization: str = DEFAULT_ORGANIZATION, ago: timedelta = timedelta()
    ) -> tuple[UUID, str]:
        """Create a session. Return its id and its token."""
        row = SignInSession(
            user_id=user, organization_id=organization, user_agent="", address="127.0.0.1"
        )
        return sessions.create(self.session, row, self.now - ago)

    def grant(
        self, user: UUID, organization: str = DEFAULT_ORGANIZATION, ago: timedelta = timedelta()
    ) -> tuple[UUID, str, str]:
        """Create an OAuth grant. Return its id, an access token and a refresh token."""
        new_code = OAuthCode(
            client_id="vcl_test", user_id=user, organization_id=organization,
            redirect_uri="https://agent.example", code_challenge="-",
        )  # fmt: skip
        code = grants.add_code(self.session, new_code, self.now - ago)
        self.session.flush()
        row = grants.find_and_lock_code(self.session, code, "vcl_test", self.now - ago)
        assert row is not None
        result = grants.open_grant(self.session, row, self.now - ago)
        access, refresh = new_secret(ACCESS), new_secret(REFRESH)
        grants.add_tokens(self.session, result, access, refresh, self.now - ago)
        return result.id, access, refresh

    def retail(self, *, can_write: bool, ago: timedelta = timedelta()) -> tuple[UUID, str, str]:
        """Create a retail API key. Return its id, the key and an access token."""
        key_id, secret = clients.create_key(
            self.session, name="test", organization_id=DEFAULT_ORGANIZATION, environment="test",
            can_write=can_write, now=self.now,
        )  # fmt: skip
        signers = signing_keys.create(self.session, self.now)
        self.session.flush()
        token = clients.exchange(self.session, secret, self.now - ago)
        assert token is not None
        access = signers.access_tokens.issue(key_id, token.family, self.now - ago)
        return key_id, secret, access

    def invitation(self, user: UUID, organization: str = DEFAULT_ORGANIZATION) -> UUID:
        row = Invitation(
            organization_id=organization, email=f"{uuid.uuid4()}@example.com", role="viewer",
            locations=[], invited_by=user,
        )  # fmt: skip
        invitations.invite(self.session, row, self.now)
        return row.id

    def user_objects(self, user: UUID, organization: str = DEFAULT_ORGANIZATION) -> UserObjects:
        return UserObjects(
            user,
            self.invitation(user, organization),
            self.sign_in(user, organization)[0],
            self.key(can_write=False, owner=user, organization=organization)[0],
            self.grant(user, organization)[0],
        )

    def devices(self, key_id: UUID) -> Mapping[Target, EnrolledDevice]:
        """Enrol a device for each target with one key, in the order of ``TARGETS``.

        The order matters, because the operation `current` returns the newest of the key's devices
        to which the caller has access.
        """
        return {
            target: self.enroller.enroll_device(
                key_id, ORGANIZATION_AT[target], self.objects_by_target[target].location_id
            )
            for target in TARGETS
        }


def bearer(token: str) -> Headers:
    return {"authorization": f"Bearer {token}"}


def cookie(token: str) -> Headers:
    return {"cookie": f"venue.session_token={token}", "origin": ORIGIN}


def objects_of_other_users(maker: CredentialMaker) -> Mapping[Target, UserObjects]:
    """Return for each target the objects of a user who has none of the tested credentials."""
    results: dict[Target, UserObjects] = {}
    for target in TARGETS:
        user = maker.add_user("owner", organization=ORGANIZATION_AT[target])
        results[target] = maker.user_objects(user, ORGANIZATION_AT[target])
    return results


def valid_credentials(maker: CredentialMaker) -> Iterator[Credential]:
    """Return all valid credentials: every kind and role, unrestricted and for one location."""
    for can_write in (False, True):
        for locations in ((), maker.own_location):
            key_id, headers = maker.key(can_write=can_write, locations=locations)
            column = "key writes" if can_write else "key reads"
            name = f"{column}, no owner, {len(locations)} locations"
            yield _with_devices(maker, name, column, headers, key_id, is_restricted=bool(locations))
    for role in ROLES:
        yield from _credentials_of_user(maker, role, ())
    # An owner has all permissions of a manager, so a restricted manager need not be tested.
    for role in ("owner", "viewer"):
        yield from _credentials_of_user(maker, role, maker.own_location)
    for can_write in (False, True):
        column = "retail writes" if can_write else "retail reads"
        yield Credential(column, column, bearer(maker.retail(can_write=can_write)[2]))


def _credentials_of_user(
    maker: CredentialMaker, role: Role, locations: Sequence[str]
) -> Iterator[Credential]:
    user, is_restricted = maker.add_user(role, locations), bool(locations)
    name = f"{role} of {len(locations)} locations"
    for can_write in (False, True):
        # All keys of a restricted user are restricted to the user's location anyway. Restricted
        # keys of a manager are left out, because those of owners and viewers are enough.
        has_only_unrestricted_keys = is_restricted or role == "manager"
        for key_locations in ((),) if has_only_unrestricted_keys else ((), maker.own_location):
            key_id, headers = maker.key(can_write=can_write, locations=key_locations, owner=user)
            grant = "key writes" if can_write else "key reads"
            column = "viewer's key writes" if (role, can_write) == ("viewer", True) else grant
            full_name = f"{name}, {grant}, {len(key_locations)} locations"
            is_key_restricted = is_restricted or bool(key_locations)
            yield _with_devices(
                maker, full_name, column, headers, key_id, is_restricted=is_key_restricted
            )
    # The grant comes before the session, because the calls of the session end it: one of them
    # changes the password.
    _, access, _ = maker.grant(user)
    yield Credential(f"{name}, OAuth", "OAuth token", bearer(access), is_restricted)
    session_id, token = maker.sign_in(user)
    column = f"{role}'s session"
    owned = maker.user_objects(user)
    yield _with_devices(
        maker,
        f"{name}, session",
        column,
        cookie(token),
        session_id,
        is_restricted=is_restricted,
        owned=owned,
    )


def _with_devices(
    maker: CredentialMaker, name: str, column: str, headers: Headers, key_id: UUID, **options: Any
) -> Credential:
    devices = maker.devices(key_id)
    return Credential(name, column, headers, key_id=key_id, devices=devices, **options)


def invalid_credentials(maker: CredentialMaker) -> Iterator[Credential]:
    """Return all invalid credentials: absent, never issued, misused, revoked, ended or expired."""
    headers_by_name: dict[str, Headers] = {
        "none": {},
        **_never_issued_or_misused(maker),
        **_credentials_of_removed_members(maker),
        **_ended_credentials(maker),
    }
    for name, headers in headers_by_name.items():
        yield Credential(name, NO_ACCESS, headers)


def _never_issued_or_misused(maker: CredentialMaker) -> dict[str, Headers]:
    """Return credentials that were never issued, and valid secrets sent as the wrong kind."""
    user = maker.add_user("owner")
    session_id, token = maker.sign_in(user)
    _, _, refresh = maker.grant(user)
    _, key = maker.key(can_write=True)
    secret = key["authorization"].removeprefix("Bearer ")
    _, retail_key, access = maker.retail(can_write=True)
    header, claims, _ = access.split(".")
    return {
        "a key that was never created": bearer("vck_" + "x" * 43),
        "an OAuth token that was never created": bearer("voa_" + "x" * 43),
        "a session that was never created": cookie("x" * 43),
        "an access token with an invalid signature": bearer(f"{header}.{claims}.{'x' * 86}"),
        "no scheme": {"authorization": secret},
        "another scheme": {"authorization": f"Basic {secret}"},
        "a key as a cookie": cookie(secret),
        "a session as a key": bearer(token),
        "a session's id": cookie(str(session_id)),
        "a refresh token": bearer(refresh),
        "the secret of a retail key": bearer(retail_key),
        "a malformed token and a valid cookie": cookie(token) | bearer("malformed"),
    }


def _ended_credentials(maker: CredentialMaker) -> dict[str, Headers]:
    """Return credentials that were valid, and are revoked, ended or expired."""
    session, now = maker.session, maker.now
    user = maker.add_user("owner")
    unowned, owned = maker.key(can_write=True), maker.key(can_write=True, owner=user)
    for key_id, _ in (unowned, owned):
        key_store.revoke_key(session, key_id, now)
    session_id, ended_token = maker.sign_in(user)
    sessions.end(session, session_id, user)
    _, expired_token = maker.sign_in(user, ago=LONG_AGO)
    grant_id, access, _ = maker.grant(user)
    grants.end_by_id(session, grant_id, user)
    _, old_access, _ = maker.grant(user, ago=timedelta(hours=1))
    _, old_grant, _ = maker.grant(user, ago=LONG_AGO)
    retail_id, _, retail = maker.retail(can_write=True)
    clients.revoke_key(session, retail_id, now)
    _, _, old_retail = maker.retail(can_write=True, ago=timedelta(hours=1))
    return {
        "a key without an owner, revoked": unowned[1],
        "a member's key, revoked": owned[1],
        "session, ended": cookie(ended_token),
        "session, expired": cookie(expired_token),
        "OAuth, ended": bearer(access),
        "OAuth, expired": bearer(old_access),
        "OAuth, grant expired": bearer(old_grant),
        "retail, revoked": bearer(retail),
        "retail, expired": bearer(old_retail),
    }


def _credentials_of_removed_members(maker: CredentialMaker) -> dict[str, Headers]:
    """Return credentials of two removed members.

    One of the two users is still a member of another organization.
    """
    headers: dict[str, Headers] = {}
    for name in ("removed member of two organizations", "removed member of one"):
        user = maker.add_user("owner")
        if name == "removed member of two organizations":
            users.set_membership(
                maker.session, user, ORGANIZATION_AT["foreign"], role="owner", locations=(),
                now=maker.now,
            )  # fmt: skip
        headers[f"{name}, key"] = maker.key(can_write=True, owner=user)[1]
        headers[f"{name}, session"] = cookie(maker.sign_in(user)[1])
        headers[f"{name}, OAuth"] = bearer(maker.grant(user)[1])
        users.remove_membership(maker.session, user, DEFAULT_ORGANIZATION, maker.now)
    return headers
