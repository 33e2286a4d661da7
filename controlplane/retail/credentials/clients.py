"""The clients of the retail API in the database: their API keys and refresh tokens.

An API key is a permanent secret of one company. To get an access token, a client sends its API key,
or a refresh token, which is valid for one use within 30 days (contract: Authentication; RFC 9700,
section 4.14.2). Keys and tokens have at least 256 random bits, so the database stores their hashes
without salt.
"""

import re
import secrets
import string
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal
from uuid import UUID

from sqlalchemy import bindparam, delete, exists, select, update
from sqlalchemy.orm import Session

from controlplane.operation.caller import Caller
from controlplane.operation.permissions import hash_secret
from controlplane.storage.merchant.retail_tables import RefreshToken, RetailKey

Environment = Literal["live", "test"]
SECRET_LENGTH: Final = 64
REFRESH_LIFETIME: Final = timedelta(days=30)
HINT_LENGTH: Final = 4
_KEY: Final = re.compile(rf"venue_(?:live|test)_[A-Za-z0-9]{{{SECRET_LENGTH}}}")
_ALPHABET: Final = string.ascii_letters + string.digits


@dataclass(frozen=True, slots=True)
class NewRefreshToken:
    """A new refresh token for the client with the API key ``key_id``.

    ``family`` is the same for all tokens from one exchange of the API key.
    """

    key_id: UUID
    family: UUID
    secret: str


def is_key(text: str) -> bool:
    """Return whether the text has the form of an API key."""
    return _KEY.fullmatch(text) is not None


def create_key(
    session: Session,
    *,
    name: str,
    organization_id: str,
    environment: Environment,
    can_write: bool,
    now: datetime,
) -> tuple[UUID, str]:
    """Create a key. Return its id and the key itself. Only the hash of the key is stored."""
    secret = "".join(secrets.choice(_ALPHABET) for _ in range(SECRET_LENGTH))
    key = f"venue_{environment}_{secret}"
    row = RetailKey(
        id=uuid.uuid4(),
        name=name,
        secret_hash=hash_secret(key),
        hint=key[-HINT_LENGTH:],
        can_write=can_write,
        organization_id=organization_id,
        created_at=now,
    )
    session.add(row)
    return row.id, key


def list_keys(session: Session) -> Sequence[RetailKey]:
    return session.scalars(select(RetailKey).order_by(RetailKey.created_at)).all()


def revoke_key(session: Session, key_id: UUID, now: datetime) -> None:
    """Revoke a key. The tokens of the key become invalid at once."""
    row = session.get_one(RetailKey, key_id)
    row.revoked_at = row.revoked_at or now
    session.execute(delete(RefreshToken).where(RefreshToken.key_id == key_id))


def caller_of(session: Session, key_id: UUID, family: UUID) -> Caller | None:
    """Return the caller of an access token.

    Returns None if its API key is revoked or its family of refresh tokens has ended.
    """
    row = session.execute(_CLIENT, {"key_id": key_id, "family": family}).first()
    return None if row is None else Caller(key_id, row.organization_id, row.can_write)


# The statement is built once, because building it takes longer than executing it. It selects
# columns of tables, not of classes, because the ORM would take longer than the database.
_keys: Final = RetailKey.__table__.c
_tokens: Final = RefreshToken.__table__.c
_CLIENT: Final = select(_keys.organization_id, _keys.can_write).where(
    _keys.id == bindparam("key_id"),
    _keys.revoked_at.is_(None),
    exists().where(
        _tokens.family == bindparam("family"),
        _tokens.key_id == _keys.id,
        _tokens.ended_at.is_(None),
    ),
)


def exchange(session: Session, api_key: str, now: datetime) -> NewRefreshToken | None:
    """Return a refresh token for an API key, or None if the key is unknown or revoked."""
    if not is_key(api_key):
        return None
    query = select(RetailKey.id).where(
        RetailKey.secret_hash == hash_secret(api_key), RetailKey.revoked_at.is_(None)
    )
    key_id = session.scalars(query).first()
    return None if key_id is None else _issue(session, key_id, uuid.uuid4(), now)


def refresh(session: Session, refresh_token: str, now: datetime) -> NewRefreshToken | None:
    """Replace a refresh token by a new one. Returns None if the token is not valid.

    If the token was used before, it may have been stolen. Then all tokens from the same exchange of
    the API key are ended.
    """
    query = select(RefreshToken).where(RefreshToken.secret_hash == hash_secret(refresh_token))
    row = session.scalars(query).first()
    if row is None:
        return None
    # Refreshes with tokens of one key are serialized. Otherwise a refresh could add a token to a
    # family that is being ended.
    session.execute(select(RetailKey.id).where(RetailKey.id == row.key_id).with_for_update())
    row = session.scalars(query.execution_options(populate_existing=True)).first()
    if row is None or row.ended_at is not None or row.expires_at <= now:
        return None
    if row.used_at is not None:
        statement = update(RefreshToken).where(RefreshToken.family == row.family)
        session.execute(statement.values(ended_at=now))
        return None
    if caller_of(session, row.key_id, row.family) is None:
        return None
    row.used_at = now
    return _issue(session, row.key_id, row.family, now)


def _issue(session: Session, key_id: UUID, family: UUID, now: datetime) -> NewRefreshToken:
    """Add a new refresh token, and delete the expired ones of all keys."""
    session.execute(delete(RefreshToken).where(RefreshToken.expires_at <= now))
    token = secrets.token_urlsafe(32)
    session.add(
        RefreshToken(
            secret_hash=hash_secret(token),
            family=family,
            key_id=key_id,
            expires_at=now + REFRESH_LIFETIME,
        )
    )
    return NewRefreshToken(key_id, family, token)
