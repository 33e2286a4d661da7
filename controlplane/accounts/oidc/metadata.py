"""The metadata of an identity provider (OpenID Connect Discovery 1.0, RFC 8414)."""

from typing import Final

from pydantic import ConfigDict, ValidationError

from agent.wire.base import Model
from controlplane.accounts.oidc.errors import ProviderUnavailableError
from controlplane.accounts.oidc.providers import IdentityProvider, is_secure

PATH: Final = "/.well-known/openid-configuration"
ISSUER_MAX: Final = 256
"""Maximum length of the issuer in a message."""
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint")


class ProviderMetadata(Model):
    """The metadata that sign-in uses. Other JSON fields are ignored."""

    model_config = ConfigDict(strict=False)

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    authorization_response_iss_parameter_supported: bool = False
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)

    def client_authentication(self, provider: IdentityProvider) -> str:
        """Return the method of client authentication at the token endpoint."""
        if provider.client_secret is None:
            return "none"
        has_basic = "client_secret_basic" in self.token_endpoint_auth_methods_supported
        return "client_secret_basic" if has_basic else "client_secret_post"


def metadata_url(issuer: str) -> str:
    return issuer.removesuffix("/") + PATH


def parse_metadata(content: object, issuer: str) -> ProviderMetadata:
    """Return the metadata in a JSON document. Raises ProviderUnavailableError.

    The issuer must be the configured one. Otherwise the document may belong to another provider
    (OpenID Connect Discovery, 4.3).
    """
    try:
        metadata = ProviderMetadata.model_validate(content)
    except ValidationError as error:
        name = ".".join(map(str, error.errors()[0]["loc"]))
        raise ProviderUnavailableError(f"the provider's metadata has no valid {name}") from None
    if metadata.issuer != issuer:
        named = metadata.issuer[:ISSUER_MAX]
        raise ProviderUnavailableError(
            f"the provider's metadata names the issuer {named!r}, but the configuration names"
            f" {issuer!r}"
        )
    for name in _ENDPOINTS:
        address = getattr(metadata, name)
        if address is not None and not is_secure(address):
            raise ProviderUnavailableError(f"the provider's {name} is not an https address")
    return metadata
