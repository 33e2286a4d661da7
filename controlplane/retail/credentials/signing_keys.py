"""The signing keys of the service: Ed25519 for access tokens, HMAC-SHA256 for cursors."""

import secrets
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from controlplane.retail.credentials.access_tokens import AccessTokens
from controlplane.storage.merchant.retail_tables import SigningKey

Purpose = Literal["access tokens", "cursors"]
PURPOSES: Final[tuple[Purpose, ...]] = ("access tokens", "cursors")
SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class SigningKeys:
    access_tokens: AccessTokens
    cursor_key: bytes


def load(session: Session) -> SigningKeys | None:
    """Return the keys in use, or None if a purpose has no key."""
    query = select(SigningKey).where(SigningKey.retired_at.is_(None))
    rows = session.scalars(query.order_by(SigningKey.created_at, SigningKey.id)).all()
    newest = {row.purpose: row for row in rows}
    if set(PURPOSES) - set(newest):
        return None
    signers = {
        str(row.id): Ed25519PrivateKey.from_private_bytes(row.secret)
        for row in rows
        if row.purpose == "access tokens"
    }
    current = str(newest["access tokens"].id)
    return SigningKeys(AccessTokens(current, signers), newest["cursors"].secret)


def create(session: Session, now: datetime) -> SigningKeys:
    """Create missing keys, and return the keys in use."""
    query = select(SigningKey.purpose).where(SigningKey.retired_at.is_(None))
    for purpose in set(PURPOSES) - set(session.scalars(query)):
        session.add(_new(purpose, now))
    session.flush()
    keys = load(session)
    assert keys is not None  # noqa: S101 - there is one for each purpose now
    return keys


def rotate(session: Session, now: datetime) -> UUID:
    """Rotate the signing key. Existing access tokens are refused within seconds."""
    in_use = (SigningKey.purpose == "access tokens", SigningKey.retired_at.is_(None))
    session.execute(update(SigningKey).where(*in_use).values(retired_at=now))
    row = _new("access tokens", now)
    session.add(row)
    return row.id


def _new(purpose: str, now: datetime) -> SigningKey:
    return SigningKey(
        id=uuid.uuid4(),
        purpose=purpose,
        secret=secrets.token_bytes(SECRET_BYTES),
        created_at=now,
    )
