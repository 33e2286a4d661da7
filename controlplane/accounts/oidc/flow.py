"""One sign-in with an identity provider: the values that bind the answer to the browser.

The browser gets a cookie with a random secret. ``state``, ``nonce`` and the code verifier of PKCE
are derived from the secret and from the provider. So the service stores nothing before the user has
signed in, and refuses an answer that is for another browser or from another provider.
"""

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controlplane.accounts.oidc.errors import ProviderRefusedError
from controlplane.accounts.oidc.metadata import ProviderMetadata
from controlplane.accounts.oidc.providers import GOOGLE_ISSUER, IdentityProvider

OFFLINE_ACCESS: Final = "offline_access"
"""The scope that asks for a refresh token (OpenID Connect Core, 11)."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A sign-in that is not finished. The provider sends its answer to ``redirect_uri``."""

    provider: IdentityProvider
    redirect_uri: str
    secret: str

    @classmethod
    def begin(cls, provider: IdentityProvider, redirect_uri: str) -> "Flow":
        return cls(provider, redirect_uri, secrets.token_urlsafe(32))

    @property
    def state(self) -> str:
        return self._derive("state")

    @property
    def nonce(self) -> str:
        return self._derive("nonce")

    @property
    def code_verifier(self) -> str:
        """The code verifier: 43 characters, the minimum of RFC 7636, 4.1."""
        return self._derive("code_verifier")

    def authorization_url(self, metadata: ProviderMetadata) -> str:
        """Return the address at which the provider asks the user to sign in.

        Google refuses the scope ``offline_access``. To get a refresh token from Google, other
        parameters are needed. Without ``prompt=consent``, Google sends one only at the user's first
        sign-in.
        """
        from authlib.oauth2.client import OAuth2Client

        scopes: Sequence[str] = self.provider.scopes
        extra: dict[str, str] = {}
        if self.provider.issuer == GOOGLE_ISSUER and OFFLINE_ACCESS in scopes:
            scopes = [each for each in scopes if each != OFFLINE_ACCESS]
            extra = {"access_type": "offline", "prompt": "consent"}
        client = OAuth2Client(
            None,
            client_id=self.provider.client_id,
            scope=" ".join(scopes),
            redirect_uri=self.redirect_uri,
            code_challenge_method="S256",
        )
        url, _ = client.create_authorization_url(
            metadata.authorization_endpoint,
            state=self.state,
            nonce=self.nonce,
            code_verifier=self.code_verifier,
            **extra,
        )
        return str(url)

    def code_of(self, parameters: Mapping[str, str], metadata: ProviderMetadata) -> str:
        """Return the code in the parameters of an answer. Raises ProviderRefusedError.

        The answer must belong to this browser and come from this provider (RFC 9700, 4.4 and 4.7).
        """
        state = parameters.get("state", "")
        if not hmac.compare_digest(state.encode(), self.state.encode()):
            raise ProviderRefusedError("the answer does not belong to this browser's sign-in")
        issuer = parameters.get("iss")
        is_issuer_required = metadata.authorization_response_iss_parameter_supported
        if issuer != metadata.issuer and (is_issuer_required or issuer is not None):
            raise ProviderRefusedError("the answer comes from a different provider")
        if "error" in parameters:
            raise ProviderRefusedError("the provider refused, or you cancelled")
        if not parameters.get("code"):
            raise ProviderRefusedError("the answer has no code")
        return parameters["code"]

    def _derive(self, purpose: str) -> str:
        message = f"{purpose}:{self.provider.id}:{self.provider.issuer}"
        digest = hmac.new(self.secret.encode(), message.encode(), hashlib.sha256).digest()
        return urlsafe_b64encode(digest).decode().rstrip("=")
