"""The service, ready to be called."""

import functools
import os
from collections.abc import AsyncIterator, Iterator

import pytest

from controlplane.cli import main
from controlplane.settings import Settings
from controlplane.storage.database import Database
from tests.quick_databases import _quick_databases as _quick_databases
from tests.unit.controlplane.running_service import RunningService, running_service


@pytest.fixture(autouse=True, scope="session")
def _one_parser() -> Iterator[None]:
    """Build the parser of the command line once: `main` takes longer to build it than to run."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(main, "build_parser", functools.cache(main.build_parser))
        yield


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
