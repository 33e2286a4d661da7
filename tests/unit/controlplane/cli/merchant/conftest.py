"""Fixtures: a process of the service with a small sandbox."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import text

from controlplane.storage.database import Database
from tests.unit.controlplane.cli.running_fleet import ServiceProcess, run, service_process

PLAN = (
    "--until", "2026-11-20", "--days", "20", "--goods", "12", "--sales-per-day", "12",
    "--locations", "4", "--awkward",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SandboxMerchant:
    """A running service with a sandbox.

    ``keys`` maps names of environment variables to the API keys that ``sandbox load`` printed.
    """

    service: ServiceProcess
    keys: dict[str, str]

    @property
    def environment(self) -> dict[str, str]:
        return self.service.as_environment() | self.keys

    def query_number(self, query: str) -> int:
        """Run an SQL query on the database of the service, and return the number that it yields."""
        database = Database(self.service.database, connections=1)
        try:
            return database.read(lambda session: int(session.execute(text(query)).scalar_one()))
        finally:
            database.close()


@pytest.fixture(scope="package")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxMerchant]:
    database: Path = tmp_path_factory.mktemp("shop") / "service.db"
    result = run("sandbox", "load", *PLAN, "--database", str(database))
    assert result.returncode == 0, result.stderr
    keys = {}
    for line in result.stdout.splitlines():
        name, _, key = line.removeprefix("export ").partition("=")
        keys[name] = key
    with service_process(database, "--rate", "0") as service:
        yield SandboxMerchant(service, keys)


@pytest.fixture
def sandbox_environment(
    sandbox: SandboxMerchant, monkeypatch: pytest.MonkeyPatch
) -> SandboxMerchant:
    """Set the environment variables that name the service and the keys of the sandbox."""
    for name, value in sandbox.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("COLUMNS", raising=False)
    return sandbox
