"""What credentials may do now: read anew from keys, sessions and memberships, never remembered.

A key acts as its owner, cut to the key's own locations and grant, a session as its user, and an
OAuth grant as who gave it, reading only; where the membership is gone, none of them is anybody. A
key without an owner is bound to no membership.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Row, Select, and_, select
from sqlalchemy.orm import Session

from controlplane.operation.caller import Caller, cut
from controlplane.storage.account_tables import Membership, Role, SignInSession, User
from controlplane.storage.oauth_tables import OAuthGrant, OAuthToken
from controlplane.storage.tables import ApiKey

IDS_A_STEP: Final = 500
WRITING: Final[Collection[Role]] = ("owner", "manager")
"""The roles that may change anything; a viewer only looks."""


def callers(session: Session, ids: Collection[UUID], now: datetime) -> dict[UUID, Caller]:
    """Return for whom these credentials stand, by id, but for those that are no longer good."""
    found: dict[UUID, Caller] = {}
    wanted = list(ids)
    for first in range(0, len(wanted), IDS_A_STEP):
        step = wanted[first : first + IDS_A_STEP]
        for row in session.execute(_keys().where(ApiKey.id.in_(step))):
            _add(found, _of_key(row))
        others = [each for each in step if each not in found]
        if others:
            for row in session.execute(_sessions(now).where(SignInSession.id.in_(others))):
                _add(found, _of_session(row))
            for row in session.execute(_grants(now).where(OAuthGrant.id.in_(others))):
                _add(found, _of_grant(row))
    return found


def of_key(session: Session, secret_hash: str) -> Caller | None:
    row = session.execute(_keys().where(ApiKey.secret_hash == secret_hash)).first()
    return None if row is None else _of_key(row)


def of_session(session: Session, token_hash: str, now: datetime) -> tuple[Caller, datetime] | None:
    """Return the caller, and when the session was last used."""
    row = session.execute(_sessions(now).where(SignInSession.token_hash == token_hash)).first()
    return None if row is None else (_of_session(row), row.last_used_at)


def of_access_token(session: Session, token_hash: str, now: datetime) -> Caller | None:
    """Return for whom an OAuth token reads. It is good at the agent protocol only: the facade
    does not ask here."""
    of_token = _grants(now).join(OAuthToken, OAuthToken.grant_id == OAuthGrant.id)
    row = session.execute(
        of_token.where(
            OAuthToken.token_hash == token_hash,
            OAuthToken.kind == "access",
            OAuthToken.expires_at > now,
        )
    ).first()
    return None if row is None else _of_grant(row)


def of_asker(
    session: Session, asker_id: UUID, organization_id: str, now: datetime
) -> Caller | None:
    """Return who asked for something that waits (`Caller.asker_id`): a key, or a member."""
    caller = callers(session, (asker_id,), now).get(asker_id)
    if caller is not None:
        return caller
    member = session.get(Membership, (asker_id, organization_id))
    if member is None:
        return None
    return Caller(
        asker_id,
        organization_id,
        member.role in WRITING,
        frozenset(member.locations),
        owner_id=asker_id,
        role=member.role,
    )


def versions(session: Session, owners: Collection[UUID]) -> Mapping[UUID, int]:
    """Return the versions of what these users may do; who is gone has none."""
    found: dict[UUID, int] = {}
    wanted = list(owners)
    for first in range(0, len(wanted), IDS_A_STEP):
        step = wanted[first : first + IDS_A_STEP]
        query = select(User.id, User.permissions_version).where(User.id.in_(step))
        found.update({row.id: row.permissions_version for row in session.execute(query)})
    return found


def _add(found: dict[UUID, Caller], caller: Caller | None) -> None:
    if caller is not None:
        found[caller.key_id] = caller


def _keys() -> Select[*tuple[Any, ...]]:
    """The keys that are not revoked, with what bounds them: two joins by primary key."""
    return (
        select(
            ApiKey.id,
            ApiKey.organization_id,
            ApiKey.can_write,
            ApiKey.locations,
            ApiKey.owner_id,
            Membership.role,
            Membership.locations.label("bounds"),
            User.permissions_version,
        )
        .outerjoin(User, User.id == ApiKey.owner_id)
        .outerjoin(
            Membership,
            and_(
                Membership.user_id == ApiKey.owner_id,
                Membership.organization_id == ApiKey.organization_id,
            ),
        )
        .where(ApiKey.revoked_at.is_(None))
    )


def _of_key(row: Row[*tuple[Any, ...]]) -> Caller | None:
    if row.owner_id is None:
        return Caller(row.id, row.organization_id, row.can_write, frozenset(row.locations))
    if row.role is None or row.permissions_version is None:
        return None
    return Caller(
        row.id,
        row.organization_id,
        row.can_write and row.role in WRITING,
        cut(row.locations, row.bounds),
        owner_id=row.owner_id,
        role=row.role,
        permissions_version=row.permissions_version,
    )


def _sessions(now: datetime) -> Select[*tuple[Any, ...]]:
    return (
        select(
            SignInSession.id,
            SignInSession.organization_id,
            SignInSession.user_id,
            SignInSession.last_used_at,
            Membership.role,
            Membership.locations,
            User.permissions_version,
        )
        .join(User, User.id == SignInSession.user_id)
        .join(
            Membership,
            and_(
                Membership.user_id == SignInSession.user_id,
                Membership.organization_id == SignInSession.organization_id,
            ),
        )
        .where(SignInSession.expires_at > now)
    )


def _of_session(row: Row[*tuple[Any, ...]]) -> Caller:
    return Caller(
        row.id,
        row.organization_id,
        row.role in WRITING,
        frozenset(row.locations),
        kind="session",
        owner_id=row.user_id,
        role=row.role,
        permissions_version=row.permissions_version,
    )


def _grants(now: datetime) -> Select[*tuple[Any, ...]]:
    return (
        select(
            OAuthGrant.id,
            OAuthGrant.organization_id,
            OAuthGrant.user_id,
            Membership.role,
            Membership.locations,
            User.permissions_version,
        )
        .join(User, User.id == OAuthGrant.user_id)
        .join(
            Membership,
            and_(
                Membership.user_id == OAuthGrant.user_id,
                Membership.organization_id == OAuthGrant.organization_id,
            ),
        )
        .where(OAuthGrant.expires_at > now)
    )


def _of_grant(row: Row[*tuple[Any, ...]]) -> Caller:
    return Caller(
        row.id,
        row.organization_id,
        False,
        frozenset(row.locations),
        kind="oauth",
        owner_id=row.user_id,
        role=row.role,
        permissions_version=row.permissions_version,
    )
