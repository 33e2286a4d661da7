"""Fixtures that run the service for the tests."""

import functools
import os
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing

import httpcore2
import pytest
from starlette import routing

from controlplane.cli import main
from controlplane.operation import body_reader
from controlplane.settings import Settings
from controlplane.storage.database import Database
from tests.quick_databases import quick_databases
from tests.unit.controlplane.running_service import RunningService, running_service

__all__ = ["quick_databases"]  # a fixture
# The environment variable that tests/postgresql.py reads. It is repeated here, because that module
# imports modules that only POSIX has.
_VARIABLE = "VENUE_TEST_DATABASE"

# httpx2 tries to import sniffio for every call of an ASGI application. With this entry, the
# import fails without a search.
sys.modules.setdefault("sniffio", None)  # type: ignore[arg-type]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On PostgreSQL, deselect the tests that do not use the `database` fixture."""
    if _VARIABLE in os.environ:
        uses: dict[bool, list[pytest.Item]] = {True: [], False: []}
        for item in items:
            uses["database" in getattr(item, "fixturenames", ())].append(item)
        items[:] = uses[True]
        config.hook.pytest_deselected(items=uses[False])


@pytest.fixture(autouse=True, scope="session")
def _one_parser() -> Iterator[None]:
    """Build the command line parser only once, because this is the slowest part of `main`."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(main, "build_parser", functools.cache(main.build_parser))
        yield


@pytest.fixture(autouse=True, scope="session")
def _one_compilation_of_each_route() -> Iterator[None]:
    """Compile the pattern of each path once. Most tests start a service with over 150 paths."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(routing, "compile_path", functools.cache(routing.compile_path))
        yield


@pytest.fixture(autouse=True, scope="session")
def _forked_body_parsers() -> Iterator[None]:
    """Fork the processes that parse large bodies. A spawned process would first import the service,
    which takes most of a second. `test_body_reader.py` uses spawned processes.
    """
    with pytest.MonkeyPatch.context() as monkeypatch:
        if sys.platform == "linux":
            monkeypatch.setattr(body_reader, "_start_process", _fork_body_parser)
        yield


def _fork_body_parser() -> ProcessPoolExecutor:
    from tests.scenario.forked_process import context

    begin = body_reader.prepare_child_process
    return ProcessPoolExecutor(1, mp_context=context(), initializer=begin)


@pytest.fixture(autouse=True, scope="package")
def _one_reading_of_the_trusted_certificates() -> Iterator[None]:
    """Read the trusted certificates once. An HTTP client would need 20 ms to read them again."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        read = functools.cache(httpcore2.default_ssl_context)
        monkeypatch.setattr(httpcore2, "default_ssl_context", read)
        yield


@pytest.fixture(scope="package")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """An SQLite file, or a database on the server that `_VARIABLE` names."""
    with ExitStack() as stack:
        if _VARIABLE in os.environ:
            from tests.postgresql import new_database

            url = stack.enter_context(new_database())
        else:
            url = str(tmp_path_factory.mktemp("service") / "service.db")
        yield stack.enter_context(closing(Database(url)))


@pytest.fixture
def settings() -> Settings:
    """Settings without a rate limit. Tests that need other settings override this fixture."""
    return Settings(rate_per_s=0)


@pytest.fixture
async def service(database: Database, settings: Settings) -> AsyncIterator[RunningService]:
    """The service with `database` and `settings`."""
    async with running_service(database, settings) as running:
        yield running
