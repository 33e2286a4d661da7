"""The addresses of sign-ins with identity providers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from controlplane.accounts.oidc.providers import IdentityProvider

PREFIX: Final = "/api/auth/oidc/"


@dataclass(frozen=True, slots=True)
class ProviderLink:
    """A link that begins a sign-in. ``label`` is the name of the provider."""

    label: str
    path: str


def start_path(provider: IdentityProvider) -> str:
    return PREFIX + provider.id


def callback_path(provider: IdentityProvider) -> str:
    """Return the path of the redirect URI. Each provider has its own (RFC 9700, 4.4.2.2)."""
    return f"{PREFIX}{provider.id}/callback"


def provider_links(
    providers: Iterable[IdentityProvider], return_query: str = ""
) -> Sequence[ProviderLink]:
    """Return a link for each provider.

    ``return_query`` is the query of the OAuth page to which the user returns.
    """
    suffix = "?" + urlencode({"return": return_query}) if return_query else ""
    return tuple(ProviderLink(each.label, start_path(each) + suffix) for each in providers)
