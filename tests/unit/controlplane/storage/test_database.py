"""Tests of opening a database, and of concurrent writers."""

import sqlite3
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_mock_engine, event, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from controlplane.storage import database as database_module
from controlplane.storage.database import (
    SQLITE_PRAGMAS,
    WRITE_ATTEMPTS,
    Database,
    DatabaseBusyError,
    DatabaseVersionError,
    parse_url,
)
from controlplane.storage.default_database import default_database
from controlplane.storage.migrations.tables import SCHEMA_VERSION
from controlplane.storage.tables import Base, Schema


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "service.db"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no POSIX file modes")
def test_only_the_owner_can_read_the_file(path: Path) -> None:
    Database(str(path)).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_sqlite_uses_a_write_ahead_log_with_full_synchronization(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Undo the change of the fixture `quick_databases`, which makes commits faster.
    monkeypatch.setattr(database_module, "SQLITE_PRAGMAS", SQLITE_PRAGMAS)
    database = Database(str(path))

    def pragmas(session: Session) -> tuple[str, int]:
        mode = session.execute(text("PRAGMA journal_mode")).scalar_one()
        return mode, session.execute(text("PRAGMA synchronous")).scalar_one()

    assert database.read(pragmas) == ("wal", 2)
    database.close()


def test_a_path_is_accepted_as_a_url(path: Path) -> None:
    assert parse_url(str(path)) == parse_url(f"sqlite:///{path}")
    assert parse_url("postgresql+psycopg://u:p@h/d").get_backend_name() == "postgresql"


def test_a_database_with_an_unknown_layout_is_refused(path: Path) -> None:
    database = Database(str(path))
    database.write(
        lambda session: session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    )
    database.close()
    with pytest.raises(DatabaseVersionError, match="layout 9999"):
        Database(str(path))


def test_a_failed_transaction_changes_nothing(path: Path) -> None:
    database = Database(str(path))

    def add_and_fail(session: Session) -> None:
        session.add(Schema(version=3))
        session.flush()
        raise KeyError

    with pytest.raises(KeyError):
        database.write(add_and_fail)
    assert database.read(lambda session: session.query(Schema).count()) == 1
    database.close()


def test_a_transaction_with_a_conflict_is_repeated_a_limited_number_of_times(path: Path) -> None:
    database = Database(str(path))
    attempts: list[int] = []

    def add_existing_row(session: Session) -> None:
        attempts.append(1)
        session.add(Schema(version=2))  # the row exists already
        session.flush()

    with pytest.raises(DatabaseBusyError) as busy:
        database.write(add_existing_row)
    assert isinstance(busy.value.__cause__, IntegrityError)
    assert len(attempts) == WRITE_ATTEMPTS
    database.close()


class TestLocked:
    """Another connection or another thread holds the lock. Calls wait only a short time for it."""

    @pytest.fixture
    def database(self, path: Path) -> Iterator[Database]:
        database = Database(str(path), busy_timeout_s=0.05)
        yield database
        database.close()

    @pytest.fixture
    def other(self, database: Database, path: Path) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(path, isolation_level=None)
        yield connection
        connection.close()

    def test_a_write_is_refused_until_the_lock_is_released(
        self, database: Database, other: sqlite3.Connection
    ) -> None:
        other.execute("BEGIN EXCLUSIVE")
        runs: list[int] = []
        with pytest.raises(DatabaseBusyError, match="locked by another program"):
            database.write(lambda _: runs.append(1))
        assert runs == []
        assert database.read(_schema_version) == SCHEMA_VERSION
        other.execute("ROLLBACK")
        database.write(lambda _: runs.append(1))
        assert runs == [1]

    def test_a_read_is_refused_while_another_program_has_exclusive_access(
        self, database: Database, other: sqlite3.Connection
    ) -> None:
        # With a write-ahead log, only this locking mode keeps readers out. SQLite enters the mode
        # only if no other connection is open.
        database.close()
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("COMMIT")
        with pytest.raises(DatabaseBusyError, match="locked by another program"):
            database.read(_schema_version)
        other.close()
        assert database.read(_schema_version) == SCHEMA_VERSION

    def test_only_the_first_write_waits_while_the_database_is_locked(
        self, path: Path, other: sqlite3.Connection
    ) -> None:
        database = Database(str(path), busy_timeout_s=0.05)
        other.execute("BEGIN EXCLUSIVE")
        statements: list[str] = []

        def trace(connection: sqlite3.Connection, *_: Any) -> None:
            connection.set_trace_callback(statements.append)

        event.listen(database._engine, "checkout", trace)
        for _ in range(3):
            with pytest.raises(DatabaseBusyError):
                database.write(_schema_version)
        other.execute("ROLLBACK")
        for _ in range(2):
            assert database.write(_schema_version) == SCHEMA_VERSION
        begin, short, long = "BEGIN IMMEDIATE", "busy_timeout = 0", "busy_timeout = 50"
        begins_and_timeouts = [
            statement.removeprefix("PRAGMA ")
            for statement in statements
            if statement.endswith((begin, short, long))
        ]
        assert begins_and_timeouts == [begin, short, begin, begin, begin, long, begin]
        database.close()

    def test_the_wait_for_another_thread_of_the_process_is_limited(
        self, database: Database
    ) -> None:
        began, end = threading.Event(), threading.Event()

        def hold(_session: Session) -> None:
            began.set()
            end.wait(60)

        holder = threading.Thread(target=database.write, args=(hold,))
        holder.start()
        try:
            assert began.wait(60)
            with pytest.raises(DatabaseBusyError, match="busy"):
                database.write(_schema_version)
        finally:
            end.set()
            holder.join(60)
        assert database.write(_schema_version) == SCHEMA_VERSION


def _schema_version(session: Session) -> int:
    return int(session.execute(text("SELECT version FROM schema_version")).scalar_one())


def test_concurrent_writers_lose_no_update(path: Path) -> None:
    """Each transaction reads, then writes. BEGIN IMMEDIATE prevents lost and refused updates."""
    databases = [Database(str(path)) for _ in range(3)]
    databases[0].write(lambda session: session.execute(text("CREATE TABLE counter (n INTEGER)")))
    databases[0].write(lambda session: session.execute(text("INSERT INTO counter VALUES (0)")))
    start = threading.Barrier(len(databases))

    def count(database: Database) -> None:
        start.wait()
        for _ in range(10):
            database.write(count_once)

    def count_once(session: Session) -> None:
        n = session.execute(text("SELECT n FROM counter")).scalar_one()
        session.execute(text("UPDATE counter SET n = :n"), {"n": n + 1})

    threads = [threading.Thread(target=count, args=(database,)) for database in databases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    total = databases[0].read(
        lambda session: session.execute(text("SELECT n FROM counter")).scalar_one()
    )
    for database in databases:
        database.close()
    assert total == 30


def test_the_layout_can_be_compiled_for_postgresql() -> None:
    statements: list[str] = []
    engine = create_mock_engine(
        "postgresql://",
        lambda sql, *_, **__: statements.append(str(sql.compile(dialect=engine.dialect))),
    )
    Base.metadata.create_all(engine, checkfirst=False)
    layout = "\n".join(statements)
    assert "BIGSERIAL" in layout
    assert "TIMESTAMP WITH TIME ZONE" in layout


@pytest.mark.parametrize(
    ("environment", "is_root", "expected"),
    [
        ({"VENUE_CONTROL_DATABASE": "postgresql://h/d"}, False, "postgresql://h/d"),
        ({"XDG_STATE_HOME": "/s"}, False, "/s/venue-control/venue-control.db"),
        ({"HOME": "/h"}, False, "/h/.local/state/venue-control/venue-control.db"),
        ({"HOME": "/h"}, True, "/var/lib/venue-control/venue-control.db"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="the expected paths are those of Linux")
def test_the_default_database_depends_on_the_environment_and_the_user(
    environment: dict[str, str], is_root: bool, expected: str
) -> None:
    assert default_database(environment, is_root=is_root) == expected
