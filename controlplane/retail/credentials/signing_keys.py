"""The signing keys of the service, and the access tokens of the retail API.

Access tokens are JWTs signed with Ed25519 (RFC 7519, RFC 8037). Their claim ``aud`` limits them to
the retail API: the facade does not accept them. Cursors are signed with HMAC-SHA256.
"""

import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal
from uuid import UUID

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from controlplane.retail.limits import ACCESS_TOKEN_S
from controlplane.storage.merchant.retail_tables import SigningKey

Purpose = Literal["access tokens", "cursors"]
PURPOSES: Final[tuple[Purpose, ...]] = ("access tokens", "cursors")
SECRET_BYTES: Final = 32
ALGORITHM: Final = "EdDSA"
AUDIENCE: Final = "retail"
ISSUER: Final = "venue-control"
_CLAIMS: Final = ("iss", "aud", "sub", "iat", "exp", "jti", "sid")


class InvalidTokenError(Exception):
    """The token is not valid."""


@dataclass(frozen=True, slots=True)
class _Claims:
    """Claims of a token with a valid signature. Times are in seconds since 1970."""

    key_id: UUID
    family: UUID
    issued_at_s: float
    expires_at_s: float


@dataclass(frozen=True, slots=True)
class AccessTokens:
    """Issues and verifies access tokens.

    ``signing`` has the keys in use by id. ``current`` is the id of the key that signs new tokens.
    """

    current: str
    signing: Mapping[str, Ed25519PrivateKey]
    _verified: dict[str, _Claims] = field(default_factory=dict, init=False, repr=False)
    """The claims of verified tokens. Verifying a signature takes a tenth of the time of a call.
    An instance is replaced after a few seconds (`Core.signing_keys`), so this dictionary stays
    small."""

    def issue(self, key_id: UUID, family: UUID, now: datetime) -> str:
        """Return a token for the client with an API key, valid for `ACCESS_TOKEN_S` seconds.

        ``family`` is the same for all tokens from one exchange of the API key.
        """
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": str(key_id),
            "iat": now,
            "exp": now + timedelta(seconds=ACCESS_TOKEN_S),
            "jti": uuid.uuid4().hex,
            "sid": str(family),
        }
        signer = self.signing[self.current]
        return jwt.encode(claims, signer, ALGORITHM, headers={"kid": self.current})

    def verify(self, token: str, now: datetime) -> tuple[UUID, UUID]:
        """Return the id of the API key and the family of a token. Raises InvalidTokenError."""
        claims = self._verified.get(token)
        if claims is None:
            claims = self._verified[token] = self._claims(token)
        if not claims.issued_at_s <= now.timestamp() < claims.expires_at_s:
            raise InvalidTokenError
        return claims.key_id, claims.family

    def _claims(self, token: str) -> _Claims:
        """Return the claims of a token, and check everything but its times."""
        try:
            signer = self.signing.get(jwt.get_unverified_header(token).get("kid", ""))
            if signer is None:
                raise InvalidTokenError
            claims = jwt.decode(
                token,
                signer.public_key(),
                algorithms=[ALGORITHM],
                audience=AUDIENCE,
                issuer=ISSUER,
                # `verify` checks the times with the clock of the service.
                options={
                    "require": list(_CLAIMS),
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
            return _Claims(
                UUID(claims["sub"]), UUID(claims["sid"]), float(claims["iat"]), float(claims["exp"])
            )
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError) as error:
            raise InvalidTokenError from error


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
    """Replace the key that signs access tokens, and return the id of the new key.

    Existing access tokens are refused within seconds.
    """
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
