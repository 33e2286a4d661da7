"""OAuth codes, grants and tokens in the database.

Before a function of this module exchanges a code or token, or ends a grant, the row of the user is
locked. Therefore two exchanges of one code are serialized, and no exchange happens while a
membership ends.
"""

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from controlplane.accounts.oauth.secrets import (
    ACCESS,
    ACCESS_LIFETIME,
    CODE,
    CODE_LIFETIME,
    REFRESH,
    REFRESH_LIFETIME,
    is_secret,
    new_secret,
)
from controlplane.accounts.users import lock_user
from controlplane.operation.permissions import hash_secret
from controlplane.storage.oauth_tables import (
    OAuthClient,
    OAuthCode,
    OAuthGrant,
    OAuthToken,
    TokenKind,
)

GRANTS_MAX: Final = 50
"""Maximum number of grants of one user. A further grant ends the least recently used one."""
TOKENS_MAX: Final = 500
"""Maximum number of access tokens, and of refresh tokens, of one grant.

At the limit, a new token replaces the token of the same kind that expires first. But an unused
refresh token is replaced only if the grant has no exchanged refresh token.
"""


def add_code(session: Session, row: OAuthCode, now: datetime) -> str:
    """Add a code and return it. Only its hash is stored. Expired codes are deleted.

    ``row`` has all columns except ``code_hash`` and ``expires_at``.
    """
    session.execute(delete(OAuthCode).where(OAuthCode.expires_at <= now))
    code = new_secret(CODE)
    row.code_hash, row.expires_at = hash_secret(code), now + CODE_LIFETIME
    session.add(row)
    return code


def find_and_lock_code(
    session: Session, code: str, client_id: str, now: datetime
) -> OAuthCode | None:
    """Return the row of a code, or None if the code is not valid. Lock the row of the user.

    If the code was already exchanged, its grant is ended (RFC 6749, 4.1.2).
    """
    if not is_secret(code, CODE):
        return None
    code_hash = hash_secret(code)
    row = session.get(OAuthCode, code_hash)
    if row is not None:
        lock_user(session, row.user_id)
        row = session.get(OAuthCode, code_hash, populate_existing=True)
    if row is None:
        query = select(OAuthGrant).where(OAuthGrant.code_hash == code_hash)
        grant = session.scalars(query).first()
        if grant is not None:
            end_by_id(session, grant.id, grant.user_id)
        return None
    return row if row.client_id == client_id and row.expires_at > now else None


def open_grant(session: Session, code: OAuthCode, now: datetime) -> OAuthGrant:
    """Create the grant for a code that `find_and_lock_code` returned, and delete the code."""
    _end_surplus_grants(session, code.user_id, now)
    grant = OAuthGrant(
        id=uuid.uuid4(),
        client_id=code.client_id,
        user_id=code.user_id,
        organization_id=code.organization_id,
        code_hash=code.code_hash,
        created_at=now,
        last_used_at=now,
        expires_at=now + REFRESH_LIFETIME,
    )
    session.add(grant)
    session.delete(code)
    client = session.get(OAuthClient, code.client_id)
    if client is not None:
        client.granted_at = now
    session.flush()
    return grant


def add_tokens(
    session: Session, grant: OAuthGrant, access: str, refresh: str, now: datetime
) -> None:
    """Add an access token and a refresh token. Only their hashes are stored."""
    session.execute(
        delete(OAuthToken).where(OAuthToken.grant_id == grant.id, OAuthToken.expires_at <= now)
    )
    new_tokens: tuple[tuple[TokenKind, str, timedelta], ...] = (
        ("access", access, ACCESS_LIFETIME),
        ("refresh", refresh, REFRESH_LIFETIME),
    )
    for kind, token, lifetime in new_tokens:
        _make_room_for_token(session, grant, kind)
        session.add(
            OAuthToken(
                token_hash=hash_secret(token), grant_id=grant.id, kind=kind,
                expires_at=now + lifetime, used_at=None,
            )
        )  # fmt: skip
    grant.last_used_at, grant.expires_at = now, now + REFRESH_LIFETIME
    session.flush()


def _make_room_for_token(session: Session, grant: OAuthGrant, kind: TokenKind) -> None:
    # Unused tokens come before exchanged ones. Among equals, tokens that expire later come first.
    kept_first = (OAuthToken.used_at.is_not(None), OAuthToken.expires_at.desc())
    query = select(OAuthToken.token_hash).where(
        OAuthToken.grant_id == grant.id, OAuthToken.kind == kind
    )
    surplus = session.scalars(query.order_by(*kept_first).offset(TOKENS_MAX - 1)).all()
    session.execute(delete(OAuthToken).where(OAuthToken.token_hash.in_(surplus)))


def find_and_lock_refresh_token(
    session: Session, token: str, now: datetime
) -> tuple[OAuthToken, OAuthGrant] | None:
    """Return a refresh token and its grant. Lock the row of the user.

    Returns None if the token is not valid.

    If the token was already exchanged, a copy might have been stolen. Therefore its grant is ended
    (RFC 9700, 4.14.2).
    """
    pair = find_and_lock_token(session, token)
    if pair is None:
        return None
    row, grant = pair
    if row.kind != "refresh" or row.expires_at <= now:
        return None
    if row.used_at is not None:
        end(session, grant)
        return None
    return row, grant


def find_and_lock_token(session: Session, token: str) -> tuple[OAuthToken, OAuthGrant] | None:
    """Return an access or refresh token and its grant, and lock the row of the user.

    Returns None if the token does not exist. Expired and exchanged tokens are returned, too.
    """
    if not (is_secret(token, ACCESS) or is_secret(token, REFRESH)):
        return None
    query = (
        select(OAuthToken, OAuthGrant)
        .join(OAuthGrant, OAuthGrant.id == OAuthToken.grant_id)
        .where(OAuthToken.token_hash == hash_secret(token))
        .execution_options(populate_existing=True)
    )
    row = session.execute(query).first()
    if row is None:
        return None
    lock_user(session, row[1].user_id)
    locked_row = session.execute(query).first()  # the token may have been deleted meanwhile
    return None if locked_row is None else (locked_row[0], locked_row[1])


def of_user(
    session: Session, user_id: UUID, now: datetime
) -> Sequence[tuple[OAuthGrant, OAuthClient | None]]:
    """Return the grants of a user with their clients, most recently used first."""
    query = (
        select(OAuthGrant, OAuthClient)
        .outerjoin(OAuthClient, OAuthClient.id == OAuthGrant.client_id)
        .where(OAuthGrant.user_id == user_id, OAuthGrant.expires_at > now)
        .order_by(OAuthGrant.last_used_at.desc(), OAuthGrant.id)
    )
    return [(row[0], row[1]) for row in session.execute(query)]


def end_by_id(session: Session, grant_id: UUID, user_id: UUID) -> OAuthGrant | None:
    """End a grant of the user and return it, or None if the user has no such grant."""
    lock_user(session, user_id)
    grant = session.get(OAuthGrant, grant_id, populate_existing=True)
    if grant is None or grant.user_id != user_id:
        return None
    session.expunge(grant)  # the caller reads it after its row is deleted
    end(session, grant)
    return grant


def end(session: Session, grant: OAuthGrant) -> None:
    """Delete a grant and its tokens. The caller has locked the row of the user."""
    session.execute(delete(OAuthToken).where(OAuthToken.grant_id == grant.id))
    session.execute(delete(OAuthGrant).where(OAuthGrant.id == grant.id))


def _end_surplus_grants(session: Session, user_id: UUID, now: datetime) -> None:
    """End the user's expired grants, and the least recently used ones, so that one more fits."""
    query = select(OAuthGrant).where(OAuthGrant.user_id == user_id)
    grants = session.scalars(query.order_by(OAuthGrant.last_used_at.desc(), OAuthGrant.id)).all()
    for number, row in enumerate(grants):
        if number >= GRANTS_MAX - 1 or row.expires_at <= now:
            end(session, row)
