"""A database of release 0.1.0 becomes one of today's, and loses nothing."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, inspect, text

from controlplane.storage import migrations
from controlplane.storage.database import Database, DatabaseVersionError
from controlplane.storage.tables import Base
from tests.paths import FIXTURES
from tests.postgresql import postgresql

DUMPS = FIXTURES / "databases"
"""What a service of 0.1.0 wrote: devices, one revoked, requests in each state, reports of both
kinds, keys of two organizations."""
OWN = {"schema_version", "alembic_version"}


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.needs("postgresql"))]
)
def old_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give the URL of a database as 0.1.0 left it."""
    dump = (DUMPS / f"service-0.1.0.{request.param}.sql").read_text()
    if request.param == "sqlite":
        file = tmp_path / "service.db"
        with sqlite3.connect(file) as connection:
            connection.executescript(dump)
        connection.close()
        yield f"sqlite:///{file}"
        return
    with postgresql() as url:
        engine = create_engine(url)
        with engine.begin() as begun:
            begun.exec_driver_sql(dump)
        engine.dispose()
        yield url


def content(url: str) -> dict[str, list[Any]]:
    """Return every row of every table."""
    engine = create_engine(url)
    with engine.connect() as connection:
        names = sorted(set(inspect(connection).get_table_names()) - OWN)
        found = {
            name: sorted(map(tuple, connection.execute(text(f"SELECT * FROM {name}"))), key=repr)
            for name in names
        }
    engine.dispose()
    return found


def differences(connection: Connection) -> list[Any]:
    return list(compare_metadata(MigrationContext.configure(connection), Base.metadata))


def test_nothing_is_lost_and_the_layout_is_todays(old_database: str) -> None:
    before = content(old_database)
    assert len(before["reports"]) == 9
    assert len(before["requests"]) == 9
    Database(old_database).close()
    assert content(old_database) == before
    engine = create_engine(old_database)
    with engine.connect() as connection:
        assert differences(connection) == []
        assert connection.execute(text("SELECT version FROM schema_version")).scalar_one() == 2
    engine.dispose()
    # Doing it again changes nothing.
    Database(old_database).close()
    assert content(old_database) == before


def test_the_steps_make_the_tables_that_the_service_knows(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'service.db'}"
    Database(url).close()
    engine = create_engine(url)
    with engine.connect() as connection:
        assert differences(connection) == []
    engine.dispose()


def test_the_newest_step_is_the_last(tmp_path: Path) -> None:
    steps = ScriptDirectory(str(Path(migrations.__file__).parent))
    assert steps.get_heads() == [migrations.HEAD]
    assert steps.get_bases() == [migrations.FIRST]


def test_a_step_that_fails_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "service.db"
    with sqlite3.connect(file) as connection:
        connection.executescript((DUMPS / "service-0.1.0.sqlite.sql").read_text())
        # A table of this name is in the way of the one that Alembic fills.
        connection.execute("CREATE TABLE _alembic_tmp_devices (n INTEGER)")
    connection.close()
    url = f"sqlite:///{file}"
    before = content(url)
    with pytest.raises(Exception, match="_alembic_tmp_devices"):
        Database(url)
    assert content(url) == before


def test_a_layout_that_was_never_released_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "service.db"
    with sqlite3.connect(file) as connection:
        connection.executescript("CREATE TABLE schema_version (version INTEGER);")
        connection.execute("INSERT INTO schema_version VALUES (7)")
    connection.close()
    with pytest.raises(DatabaseVersionError, match="layout 0007"):
        Database(str(file))
