"""Access tokens of the retail API: JWTs signed with Ed25519 (RFC 7519, RFC 8037).

They are valid for the retail API only, by ``aud``. The facade does not accept them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID, uuid4

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controlplane.retail.limits import ACCESS_TOKEN_S

ALGORITHM: Final = "EdDSA"
AUDIENCE: Final = "retail"
ISSUER: Final = "venue-control"
_CLAIMS: Final = ("iss", "aud", "sub", "iat", "exp", "jti")


class InvalidTokenError(Exception):
    """The token is not valid."""


@dataclass(frozen=True, slots=True)
class AccessTokens:
    """``signing`` has the keys in use by id. ``current`` is the id of the key that signs."""

    current: str
    signing: Mapping[str, Ed25519PrivateKey]

    def issue(self, key_id: UUID, now: datetime) -> str:
        """Return a token for the client with an API key, valid for `ACCESS_TOKEN_S` seconds."""
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": str(key_id),
            "iat": now,
            "exp": now + timedelta(seconds=ACCESS_TOKEN_S),
            "jti": uuid4().hex,
        }
        signer = self.signing[self.current]
        return jwt.encode(claims, signer, ALGORITHM, headers={"kid": self.current})

    def client(self, token: str, now: datetime) -> UUID:
        """Return the API key id that a token was issued for. Raises InvalidTokenError."""
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
                # Checked below, with the clock of the service.
                options={
                    "require": list(_CLAIMS),
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
            if not claims["iat"] <= now.timestamp() < claims["exp"]:
                raise InvalidTokenError
            return UUID(claims["sub"])
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError) as error:
            raise InvalidTokenError from error
