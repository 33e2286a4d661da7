"""A database of release 0.1.0 becomes one of today's, and loses nothing."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, inspect, select, text

from controlplane.devices.overview.summaries import sum_up_old
from controlplane.devices.priority import Priority, worst
from controlplane.storage import migrations
from controlplane.storage.database import Database, DatabaseVersionError
from controlplane.storage.layout import Base
from controlplane.storage.tables import Device, Report
from tests.paths import FIXTURES
from tests.postgresql import new_database

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
    with new_database() as url:
        engine = create_engine(url)
        with engine.begin() as begun:
            begun.exec_driver_sql(dump)
        engine.dispose()
        yield url


Columns = dict[str, list[str]]


def columns(url: str) -> Columns:
    engine = create_engine(url)
    with engine.connect() as connection:
        looked = inspect(connection)
        found = {
            name: [column["name"] for column in looked.get_columns(name)]
            for name in sorted(set(looked.get_table_names()) - OWN)
        }
    engine.dispose()
    return found


def content(url: str, of: Columns | None = None) -> dict[str, list[Any]]:
    """Return every row of every table, or these columns of them."""
    engine = create_engine(url)
    with engine.connect() as connection:
        found = {
            name: sorted(
                map(tuple, connection.execute(text(f"SELECT {', '.join(wanted)} FROM {name}"))),
                key=repr,
            )
            for name, wanted in (of or columns(url)).items()
        }
    engine.dispose()
    return found


def differences(connection: Connection) -> list[Any]:
    return list(compare_metadata(MigrationContext.configure(connection), Base.metadata))


@pytest.mark.medium
def test_nothing_is_lost_and_the_layout_is_todays(old_database: str) -> None:
    known = columns(old_database)
    before = content(old_database, known)
    assert len(before["reports"]) == 9
    assert len(before["requests"]) == 9
    Database(old_database).close()
    assert content(old_database, known) == before
    engine = create_engine(old_database)
    with engine.connect() as connection:
        assert differences(connection) == []
        assert connection.execute(text("SELECT version FROM schema_version")).scalar_one() == 2
    engine.dispose()
    # Doing it again changes nothing.
    after = content(old_database)
    Database(old_database).close()
    assert content(old_database) == after


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


def test_old_reports_are_summed_up_while_the_service_runs(old_database: str) -> None:
    database = Database(old_database)
    assert database.write(sum_up_old) == 9
    assert database.write(sum_up_old) == 0
    with database.read(lambda session: session) as session:
        reports = {report.position: report for report in session.scalars(select(Report))}
        assert all(report.headline and report.tone for report in reports.values())
        for device in session.scalars(select(Device)):
            own = [r.position for r in reports.values() if r.instance_id == device.instance_id]
            newest = (device.network_report, device.application_report)
            assert max(own, default=None) in {*newest, None}
            assert device.tone == worst(*(reports[each].tone for each in newest if each))
            assert (device.priority == Priority.REVOKED) is (device.revoked_at is not None)
    database.close()


def test_an_old_report_that_cannot_be_read_keeps_no_other_waiting(tmp_path: Path) -> None:
    file = tmp_path / "service.db"
    with sqlite3.connect(file) as connection:
        connection.executescript((DUMPS / "service-0.1.0.sqlite.sql").read_text())
        connection.execute("UPDATE reports SET payload = '{}' WHERE position = 1")
    connection.close()
    database = Database(str(file))
    assert database.write(sum_up_old) == 9
    with database.read(lambda session: session) as session:
        unreadable = session.get(Report, 1)
        assert unreadable is not None
        assert (unreadable.headline, unreadable.tone) == (
            "This report cannot be summed up.",
            "muted",
        )
    database.close()


def test_a_layout_that_was_never_released_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "service.db"
    with sqlite3.connect(file) as connection:
        connection.executescript("CREATE TABLE schema_version (version INTEGER);")
        connection.execute("INSERT INTO schema_version VALUES (99)")
    connection.close()
    with pytest.raises(DatabaseVersionError, match="layout 0099"):
        Database(str(file))
