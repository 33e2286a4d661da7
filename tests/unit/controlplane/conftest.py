"""The service, ready to be called."""

import os
from collections.abc import AsyncIterator, Iterator

import pytest

from controlplane.settings import Settings
from controlplane.storage.database import Database
from tests.unit.controlplane.running_service import RunningService, running_service


@pytest.fixture(scope="package")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A file of the tests' own, or the empty database that ``VENUE_TEST_DATABASE`` names."""
    file = str(tmp_path_factory.mktemp("service") / "service.db")
    opened = Database(os.environ.get("VENUE_TEST_DATABASE", file))
    yield opened
    opened.close()


@pytest.fixture
def settings() -> Settings:
    """Overridden where a test is about a setting. No rate limit: tests are quick."""
    return Settings(rate_per_s=0)


@pytest.fixture
async def service(database: Database, settings: Settings) -> AsyncIterator[RunningService]:
    async with running_service(database, settings) as running:
        yield running
