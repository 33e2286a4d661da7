"""The addresses of sign-ins with identity providers."""

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlencode

from agent.wire.base import Tolerant
from controlplane.accounts.oidc.providers import IdentityProvider

PREFIX: Final = "/api/auth/oidc/"


class ProviderRecord(Tolerant):
    """An identity provider. A browser begins the sign-in at ``path``."""

    label: str
    path: str


def start_path(provider: IdentityProvider) -> str:
    return PREFIX + provider.id


def callback_path(provider: IdentityProvider) -> str:
    """Return the path of the redirect URI. Each provider has its own (RFC 9700, 4.4.2.2)."""
    return f"{PREFIX}{provider.id}/callback"


def provider_links(
    providers: Iterable[IdentityProvider], return_query: str = ""
) -> tuple[ProviderRecord, ...]:
    """Return a link for each provider.

    ``return_query`` is the query of the OAuth page to which the user returns.
    """
    suffix = "?" + urlencode({"return": return_query}) if return_query else ""
    return tuple(
        ProviderRecord(label=each.label, path=start_path(each) + suffix) for each in providers
    )
