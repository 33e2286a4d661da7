"""The current permissions of credentials, read from the database.

An API key of a user acts as this user, restricted to the locations and the grant of the key. A
session acts as its user. An OAuth grant acts as the user who gave it, and can only read. When the
membership of the user ends, the credential has no access. An API key without a user does not depend
on a membership.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Row, Select, and_, bindparam, or_, select
from sqlalchemy.orm import Session

from controlplane.operation.caller import Caller, CredentialKind, intersect_locations
from controlplane.operation.errors import unauthenticated
from controlplane.storage.account_tables import (
    Membership,
    Role,
    SignInPolicy,
    SignInSession,
    User,
)
from controlplane.storage.oauth_tables import OAuthGrant, OAuthToken
from controlplane.storage.tables import ApiKey

IDS_A_STEP: Final = 500
"""Maximum number of ids in one query."""
WRITING_ROLES: Final[Collection[Role]] = ("owner", "manager")
"""The roles with write access. A viewer can only read."""


def hash_secret(text: str) -> str:
    """Return the hash that is stored instead of a key, a token or a code.

    Plain SHA-256 is enough: these secrets have at least 80 random bits and cannot be guessed.
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def callers(session: Session, ids: Collection[UUID], now: datetime) -> dict[UUID, Caller]:
    """Return the callers by the id of their credential. Ended credentials are left out."""
    callers_by_id: dict[UUID, Caller] = {}
    for step in _steps(ids):
        keys = map(_key_caller, session.execute(_KEYS_BY_ID, {"ids": step}))
        callers_by_id.update({key.key_id: key for key in keys if key is not None})
        other_ids = [key_id for key_id in step if key_id not in callers_by_id]
        if other_ids:
            for row in session.execute(_SESSIONS_BY_ID, {"ids": other_ids, "now": now}):
                callers_by_id[row.id] = _session_caller(row)
            for row in session.execute(_GRANTS_BY_ID, {"ids": other_ids, "now": now}):
                callers_by_id[row.id] = _grant_caller(row)
    return callers_by_id


def callers_of_key_hashes(session: Session, hashes: Sequence[str]) -> dict[str, Caller]:
    """Return the callers of API keys by the hash of the key (`hash_secret`).

    Unknown and ended keys are left out.
    """
    rows = session.execute(_KEYS_BY_HASH, {"hashes": hashes})
    callers_by_hash = {row.secret_hash: _key_caller(row) for row in rows}
    return {key_hash: each for key_hash, each in callers_by_hash.items() if each is not None}


def caller_of_session(
    session: Session, token_hash: str, now: datetime
) -> tuple[Caller, datetime] | None:
    """Return the caller of a session, and the time of the session's last use.

    Returns None if the session is unknown or not valid.
    """
    row = session.execute(_SESSION_BY_HASH, {"hash": token_hash, "now": now}).first()
    return None if row is None else (_session_caller(row), row.last_used_at)


def caller_of_access_token(session: Session, token_hash: str, now: datetime) -> Caller | None:
    """Return the caller of an OAuth access token, or None if the token is not valid.

    Only the agent protocol accepts these tokens.
    """
    row = session.execute(_GRANT_BY_TOKEN, {"hash": token_hash, "now": now}).first()
    return None if row is None else _grant_caller(row)


def caller_of_requester(
    session: Session, requester_id: UUID, organization_id: str, now: datetime
) -> Caller | None:
    """Return the creator of a pending request: an API key or a member (`Caller.requester_id`).

    Returns None if the key or the membership has ended.
    """
    caller = callers(session, (requester_id,), now).get(requester_id)
    if caller is not None:
        return caller
    member = session.get(Membership, (requester_id, organization_id))
    if member is None:
        return None
    return Caller(
        requester_id,
        organization_id,
        member.role in WRITING_ROLES,
        frozenset(member.locations),
        owner_id=requester_id,
        role=member.role,
    )


def renewed_caller(session: Session, caller: Caller, now: datetime) -> Caller:
    """Return the caller with its current permissions.

    Raises a refusal if the credential is no longer valid.
    """
    current_caller = callers(session, (caller.key_id,), now).get(caller.key_id)
    if current_caller is None:
        raise unauthenticated()
    return current_caller


def permission_versions(session: Session, owners: Collection[UUID]) -> Mapping[UUID, int]:
    """Return the versions of the permissions of users. Deleted users are missing."""
    versions_by_user: dict[UUID, int] = {}
    for step in _steps(owners):
        query = select(User.id, User.permissions_version).where(User.id.in_(step))
        versions_by_user.update({row.id: row.permissions_version for row in session.execute(query)})
    return versions_by_user


def _steps(ids: Collection[UUID]) -> Iterator[Sequence[UUID]]:
    """Yield the ids in groups that fit into one query.

    `storage.statements.in_steps` is not used, because a test limits the number of modules whose
    functions run during one call to the service (`test_walk.py`).
    """
    all_ids = list(ids)
    return (all_ids[first : first + IDS_A_STEP] for first in range(0, len(all_ids), IDS_A_STEP))


def _credentials(
    table: Any, user_id: Any, *columns: Any, is_outer: bool = False
) -> Select[*tuple[Any, ...]]:
    """Select credentials with their users and memberships, by two joins on primary keys.

    ``bounds`` are the locations of the membership. With ``is_outer``, credentials without a user
    are selected too.
    """
    is_member = and_(
        _memberships.user_id == user_id, _memberships.organization_id == table.organization_id
    )
    return (
        select(
            table.id,
            table.organization_id,
            user_id.label("owner_id"),
            _memberships.role,
            _memberships.locations.label("bounds"),
            _users.permissions_version,
            *columns,
        )
        .join(User.__table__, _users.id == user_id, isouter=is_outer)
        .join(Membership.__table__, is_member, isouter=is_outer)
    )


# Each statement is built once, because building it takes longer than executing it. It selects
# columns of tables, not of classes, because the ORM would take longer than the database.
_users: Final = User.__table__.c
_memberships: Final = Membership.__table__.c
_keys: Final = ApiKey.__table__.c
_policies: Final = SignInPolicy.__table__.c
_sessions: Final = SignInSession.__table__.c
_grants: Final = OAuthGrant.__table__.c
_tokens: Final = OAuthToken.__table__.c
_KEYS: Final = _credentials(
    _keys, _keys.owner_id, _keys.can_write, _keys.locations, is_outer=True
).where(_keys.revoked_at.is_(None))
_KEYS_BY_ID: Final = _KEYS.where(_keys.id.in_(bindparam("ids", expanding=True)))
_KEYS_BY_HASH: Final = _KEYS.add_columns(_keys.secret_hash).where(
    _keys.secret_hash.in_(bindparam("hashes", expanding=True))
)

# The condition for sessions that a stricter policy has ended: they began with a password, and the
# organization now refuses passwords, or requires a second factor that the sign-in did not have.
_HAS_STRICTER_POLICY: Final = (
    select(_policies.organization_id)
    .where(
        _policies.organization_id == _sessions.organization_id,
        _sessions.provider.is_(None),
        or_(
            _policies.accepts_passwords.is_(False),
            and_(
                _policies.requires_second_factor.is_(True),
                _sessions.has_second_factor.is_(False),
            ),
        ),
    )
    .exists()
)
_SESSIONS: Final = _credentials(_sessions, _sessions.user_id, _sessions.last_used_at).where(
    _sessions.expires_at > bindparam("now"),
    or_(_sessions.verified_until.is_(None), _sessions.verified_until > bindparam("now")),
    _memberships.managed_by.is_not_distinct_from(_sessions.provider),
    ~_HAS_STRICTER_POLICY,
)
_SESSIONS_BY_ID: Final = _SESSIONS.where(_sessions.id.in_(bindparam("ids", expanding=True)))
_SESSION_BY_HASH: Final = _SESSIONS.where(_sessions.token_hash == bindparam("hash"))

_GRANTS: Final = _credentials(_grants, _grants.user_id).where(_grants.expires_at > bindparam("now"))
_GRANTS_BY_ID: Final = _GRANTS.where(_grants.id.in_(bindparam("ids", expanding=True)))
_GRANT_BY_TOKEN: Final = _GRANTS.join(OAuthToken.__table__, _tokens.grant_id == _grants.id).where(
    _tokens.token_hash == bindparam("hash"),
    _tokens.kind == "access",
    _tokens.expires_at > bindparam("now"),
)


def _key_caller(row: Row[*tuple[Any, ...]]) -> Caller | None:
    if row.owner_id is None:
        return Caller(row.id, row.organization_id, row.can_write, frozenset(row.locations))
    if row.role is None or row.permissions_version is None:
        return None  # the membership has ended, or the user was deleted
    can_write = row.can_write and row.role in WRITING_ROLES
    return _member_caller(row, "api_key", can_write, intersect_locations(row.locations, row.bounds))


def _session_caller(row: Row[*tuple[Any, ...]]) -> Caller:
    return _member_caller(row, "session", row.role in WRITING_ROLES, frozenset(row.bounds))


def _grant_caller(row: Row[*tuple[Any, ...]]) -> Caller:
    return _member_caller(row, "oauth", False, frozenset(row.bounds))


def _member_caller(
    row: Row[*tuple[Any, ...]], kind: CredentialKind, can_write: bool, locations: frozenset[str]
) -> Caller:
    return Caller(
        row.id,
        row.organization_id,
        can_write,
        locations,
        kind=kind,
        owner_id=row.owner_id,
        role=row.role,
        permissions_version=row.permissions_version,
    )
