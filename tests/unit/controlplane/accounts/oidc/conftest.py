"""Fixtures: an identity provider, and a service that trusts this provider for one domain."""

from collections.abc import AsyncIterator, Iterator

import pytest

from controlplane.accounts.oidc.providers import GroupRole, IdentityProvider
from controlplane.settings import Settings
from controlplane.storage.database import Database
from tests.fakes.identity_provider.authorization import CLIENT_ID, CLIENT_SECRET
from tests.fakes.identity_provider.process import ProviderProcess, provider_process
from tests.unit.controlplane.running_service import RunningService, running_service

ROLES = (
    GroupRole(organization="org-0001", group="venue-owners", role="owner"),
    GroupRole(organization="org-0001", group="venue-viewers", role="viewer"),
    GroupRole(organization="org-0002", group="harbour-viewers", role="viewer"),
)


def provider_at(issuer: str, provider_id: str = "contoso") -> IdentityProvider:
    return IdentityProvider(
        id=provider_id,
        label=provider_id.title(),
        issuer=issuer,
        client_id=CLIENT_ID,
        client_secret=CLIENT_SECRET,
        domains=(f"{provider_id}.example",),
        roles=ROLES,
    )


@pytest.fixture(scope="package")
def provider() -> Iterator[ProviderProcess]:
    with provider_process() as running:
        yield running


@pytest.fixture
async def service(
    database: Database, settings: Settings, provider: ProviderProcess
) -> AsyncIterator[RunningService]:
    async with running_service(
        database, settings, identity_providers=[provider_at(provider.issuer)]
    ) as running:
        provider.reset(running.clock())
        yield running
