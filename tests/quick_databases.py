"""Makes the SQLite databases of a test process fast, for tests that do not test durability.

The tables are created from the models once per process. Each new database gets a copy of this
schema, without migrations. Commits do not wait for the disk. Services that run in separate
processes are not affected.
"""

import functools
import sqlite3
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, create_engine

from controlplane.storage import database
from controlplane.storage.database import SQLITE_PRAGMAS as PRAGMAS
from controlplane.storage.migrations.upgrade import layout, upgrade


@pytest.fixture(autouse=True, scope="session")
def quick_databases() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(database, "upgrade", _upgrade)
        pragmas = [pragma.replace("synchronous=FULL", "synchronous=OFF") for pragma in PRAGMAS]
        monkeypatch.setattr(database, "SQLITE_PRAGMAS", pragmas)
        yield


def _upgrade(connection: Connection) -> str | None:
    if connection.dialect.name != "sqlite" or layout(connection) is not None:
        return upgrade(connection)
    for statement in _statements():
        connection.exec_driver_sql(statement)
    return None


@functools.cache
def _statements() -> tuple[str, ...]:
    """Return the SQL statements that create an empty database with the newest tables."""
    engine = create_engine("sqlite://")
    try:
        with engine.begin() as connection:
            upgrade(connection)
            sqlite_connection = connection.connection.driver_connection
            assert isinstance(sqlite_connection, sqlite3.Connection)
            return tuple(sqlite_connection.iterdump())[1:-1]  # without BEGIN and COMMIT
    finally:
        engine.dispose()
