"""What an identity provider states about a user: claims of the ID token and of userinfo.

A token is accepted only if it is signed with an asymmetric algorithm. Tokens without a signature
are refused. Tokens that use the provider's public key as a shared secret are refused, too (RFC
8725, 3.1).
"""

import unicodedata
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from controlplane.accounts.oidc.errors import ProviderRefusedError
from controlplane.accounts.oidc.providers import IdentityProvider
from controlplane.accounts.users import require_email
from controlplane.operation.storable_text import NAME_MAX

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
LEEWAY_S: Final = 60
"""Permitted difference between the clocks of the provider and of the service."""
SUBJECT_MAX: Final = 255
GROUPS_MAX: Final = 10_000


class UnknownKeyError(Exception):
    """No key of the provider has the id that the token names. The provider may have new keys."""


@dataclass(frozen=True, slots=True)
class Claims:
    """The statements about a user.

    ``subject`` is the user's id at the provider. ``email`` is None if the provider has not verified
    an address.
    """

    subject: str
    email: str | None
    name: str
    groups: frozenset[str]


def verify_id_token(
    token: object,
    keys: Mapping[str, Any],
    provider: IdentityProvider,
    *,
    now: datetime,
    access_token: str,
    nonce: str | None = None,
) -> Mapping[str, Any]:
    """Return the claims of a valid ID token (OpenID Connect Core, 3.1.3.7).

    Args:
        keys: the provider's JSON Web Key Set.
        access_token: compared with the claim ``at_hash`` of the ID token, if it has this claim.
        nonce: the nonce of the sign-in. None for a refreshed ID token, which needs no nonce (12.2).

    Raises:
        UnknownKeyError: the provider's keys must be fetched again.
        ProviderRefusedError: the token is not valid.
    """
    from authlib.oidc.core import CodeIDToken
    from joserfc import jwt
    from joserfc.errors import InvalidKeyIdError, JoseError
    from joserfc.jwk import KeySet

    if not isinstance(token, str):
        raise ProviderRefusedError("the provider sent no ID token")
    try:
        key_set = KeySet(_public_keys(keys["keys"]))
        decoded = jwt.decode(token, key_set, algorithms=ALGORITHMS)
        claims = CodeIDToken(
            decoded.claims,
            decoded.header,
            {
                "iss": {"essential": True, "value": provider.issuer},
                "aud": {"essential": True, "value": provider.client_id},
            },
            {"nonce": nonce, "client_id": provider.client_id, "access_token": access_token},
        )
        claims.validate(now=int(now.timestamp()), leeway=LEEWAY_S)
    except InvalidKeyIdError:
        raise UnknownKeyError from None
    except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
        # The last three are raised for keys and claims of unexpected types.
        raise ProviderRefusedError(f"the ID token is not valid ({type(error).__name__})") from None
    return dict(claims)


def _public_keys(keys: Iterable[Any]) -> list[Any]:
    """Return the keys that can be used.

    Keys of symmetric algorithms are dropped: the provider publishes only public keys. Keys of
    unknown types and curves are ignored (RFC 7517, 5), so that a provider can add such a key.
    """
    from joserfc.errors import JoseError
    from joserfc.jwk import import_key

    results = []
    for each in keys:
        if each.get("kty") != "oct":
            with suppress(JoseError, ValueError, TypeError, KeyError):
                results.append(import_key(each))
    return results


def read_claims(
    id_token: Mapping[str, Any] | None, userinfo: Mapping[str, Any], provider: IdentityProvider
) -> Claims:
    """Return the claims of the ID token, if there is one, and of userinfo, which takes precedence.

    Raises:
        ProviderRefusedError: the ID token and userinfo are about different users, they name no
            user, or the provider left out the user's groups because there are too many.
    """
    claims = {**(id_token or {}), **userinfo}
    subject = claims.get("sub")
    if id_token is not None and userinfo and id_token.get("sub") != userinfo.get("sub"):
        raise ProviderRefusedError("the ID token and userinfo are about different users")
    if not isinstance(subject, str) or not 0 < len(subject) <= SUBJECT_MAX or "\0" in subject:
        raise ProviderRefusedError("the provider sent no usable id of the user")
    if not has_groups(claims, provider) and any(
        _has_too_many_groups(each, provider.groups_claim) for each in (id_token or {}, userinfo)
    ):
        raise ProviderRefusedError(
            f"you are in too many groups at {provider.label}, so it did not send them: ask your"
            " administrator to send only the groups that are assigned to the application"
        )
    name = claims.get("name")
    return Claims(
        subject=subject,
        email=_email(claims, id_token or {}, provider),
        name=_printable(name)[:NAME_MAX] if isinstance(name, str) else "",
        groups=_groups(claims.get(provider.groups_claim)),
    )


def _email(
    claims: Mapping[str, Any], id_token: Mapping[str, Any], provider: IdentityProvider
) -> str | None:
    """Return the address that the provider has verified, or None.

    Entra ID never sends ``email_verified``. Its optional claim ``xms_edov`` states that the domain
    of the address is verified. This is secure only for the address in the same ID token, because
    the address in userinfo can be one that the user has set.
    """
    if "email_verified" in claims:
        verified = claims["email_verified"]
        is_verified = verified is True or verified == "true"  # Amazon Cognito sends a string
    elif provider.is_entra:
        claims = id_token
        is_verified = claims.get("xms_edov") in (True, 1, "1", "true")  # true and "1" were observed
    else:
        is_verified = False
    email = claims.get("email")
    if not is_verified or not isinstance(email, str):
        return None
    try:
        # Normalized, because two addresses that are displayed alike must not have two accounts.
        return require_email(unicodedata.normalize("NFC", email))
    except ValueError:
        return None


def has_groups(claims: Mapping[str, Any], provider: IdentityProvider) -> bool:
    """Return whether the claims contain the user's groups. The list of groups can be empty."""
    return claims.get(provider.groups_claim) is not None


def _has_too_many_groups(claims: Mapping[str, Any], groups_claim: str) -> bool:
    """Return whether the provider left out the groups because there are too many.

    Entra ID leaves them out for users in more than 200 groups, and sends an address at which the
    groups can be read. Without this check, such users would count as users without groups, and
    their memberships would end.

    Args:
        claims: of the ID token, or of userinfo. ``_claim_names`` is defined in OpenID Connect Core,
            5.6.2, and ``hasgroups`` by Entra ID.
    """
    sources = claims.get("_claim_names")
    is_elsewhere = isinstance(sources, dict) and groups_claim in sources
    return is_elsewhere or (groups_claim == "groups" and "hasgroups" in claims)


def _groups(value: object) -> frozenset[str]:
    if isinstance(value, str):
        return frozenset({value})
    if not isinstance(value, list):
        return frozenset()
    return frozenset(each for each in value[:GROUPS_MAX] if isinstance(each, str))


def _printable(text: str) -> str:
    return "".join(each for each in text if each.isprintable()).strip()
