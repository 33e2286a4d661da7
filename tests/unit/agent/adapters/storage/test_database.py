"""Tests that a damaged database is quarantined, and a locked or inaccessible one is not."""

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from agent.adapters.failpoints import Failpoint
from agent.adapters.storage.database import Database, quarantine_database
from agent.adapters.storage.journal import Journal
from agent.adapters.storage.state import StateDirectory
from agent.errors import StateError
from tests.unit.agent.samples import NOW, command

NAME = "agent.db"
NORMAL, FULL = 1, 2
"""Values of PRAGMA synchronous."""


def fill(state: StateDirectory, requests: int = 200) -> None:
    """Create the database with this number of requests."""
    rows = [(str(number), *["x" * 40] * 3, "received", "r", "u") for number in range(requests)]
    with (
        contextlib.closing(Database(state)) as database,
        database.transaction(Failpoint.REQUEST_ADDED) as connection,
    ):
        connection.executemany(
            "INSERT INTO requests (request_id, binding_id, kind, expires_at, state, received_at,"
            " updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            rows,
        )


def synchronous(database: Database) -> int:
    return int(database.query("PRAGMA synchronous")[0][0])


def count_requests(state: StateDirectory) -> tuple[int, bool]:
    """Open the database. Return the number of its requests, and whether opening it set a damaged
    database aside.
    """
    with contextlib.closing(Database(state)) as database:
        rows = database.query("SELECT count(*) FROM requests")
        return rows[0][0], database.was_quarantined


def quarantined_names(state: StateDirectory) -> set[str]:
    if not state.quarantine_path.exists():
        return set()
    return {path.name.split("-", 1)[1] for path in state.quarantine_path.iterdir()}


def test_database_rows_survive_a_restart(state: StateDirectory) -> None:
    fill(state)

    assert count_requests(state) == (200, False)
    assert quarantined_names(state) == set()


def test_the_database_settings_protect_against_power_loss(database: Database) -> None:
    assert database.query("PRAGMA journal_mode")[0][0] == "wal"
    assert synchronous(database) == FULL


@pytest.mark.parametrize(("durably", "level"), [(True, FULL), (False, NORMAL)])
def test_only_durable_transactions_wait_for_the_disk(
    database: Database, durably: bool, level: int
) -> None:
    with database.transaction(Failpoint.COUNTED, durably=durably) as connection:
        connection.execute("INSERT INTO counters VALUES ('seen', 1)")
        assert synchronous(database) == level

    assert synchronous(database) == FULL
    assert database.counters() == {"seen": 1}


def test_the_transaction_after_a_failed_transaction_is_durable(database: Database) -> None:
    with (
        pytest.raises(sqlite3.Error),
        database.transaction(Failpoint.COUNTED, durably=False) as connection,
    ):
        connection.execute("no SQL")

    assert synchronous(database) == FULL


@pytest.mark.parametrize(
    "content",
    [b"not a database at all, but long enough" * 100, b"\x00" * 4096, b"SQLite format 3\x00" * 9],
    ids=["text", "zeros", "header"],
)
def test_a_file_that_is_not_a_database_is_set_aside(state: StateDirectory, content: bytes) -> None:
    (state.path / NAME).write_bytes(content)

    assert count_requests(state) == (0, True)
    assert NAME in quarantined_names(state)
    assert count_requests(state) == (0, False)


def test_an_empty_file_becomes_a_new_database(state: StateDirectory) -> None:
    (state.path / NAME).write_bytes(b"")

    assert count_requests(state) == (0, False)


@pytest.mark.parametrize("fraction", [0.2, 0.5, 0.9])
def test_a_truncated_database_is_set_aside(state: StateDirectory, fraction: float) -> None:
    fill(state)
    path = state.path / NAME
    os.truncate(path, int(path.stat().st_size * fraction))

    assert count_requests(state) == (0, True)
    assert NAME in quarantined_names(state)


def test_a_database_with_damaged_pages_is_set_aside(state: StateDirectory) -> None:
    fill(state)
    path = state.path / NAME
    content = bytearray(path.read_bytes())
    content[4096 : 4096 * 4] = os.urandom(4096 * 3)
    path.write_bytes(content)

    assert count_requests(state) == (0, True)


def test_a_database_with_an_unknown_schema_is_set_aside(state: StateDirectory) -> None:
    with contextlib.closing(sqlite3.connect(state.path / NAME)) as other:
        other.execute("CREATE TABLE requests (x)")

    assert count_requests(state) == (0, True)


def test_a_write_ahead_log_left_by_a_killed_agent_is_read(
    state: StateDirectory, tmp_path: Path
) -> None:
    after_a_crash = StateDirectory(tmp_path / "crashed")
    after_a_crash.prepare()
    with contextlib.closing(Database(state)) as database:
        Journal(database).add(command(), NOW)
        # A power loss leaves the main file and its write-ahead log, without the checkpoint that
        # SQLite makes when it closes the database.
        for suffix in ("", "-wal"):
            shutil.copy(state.path / f"{NAME}{suffix}", after_a_crash.path)
    assert (after_a_crash.path / f"{NAME}-wal").stat().st_size > 0

    assert count_requests(after_a_crash) == (1, False)


def test_the_write_ahead_log_of_a_damaged_database_is_not_used(state: StateDirectory) -> None:
    (state.path / NAME).write_bytes(b"garbage" * 1000)
    (state.path / f"{NAME}-wal").write_bytes(b"log")

    assert count_requests(state) == (0, True)
    assert NAME in quarantined_names(state)
    log = state.path / f"{NAME}-wal"
    assert not log.exists() or b"log" not in log.read_bytes()


def test_a_newer_schema_is_refused_and_kept(state: StateDirectory) -> None:
    fill(state, 1)
    with contextlib.closing(sqlite3.connect(state.path / NAME)) as other:
        other.execute("PRAGMA user_version=99")

    with pytest.raises(StateError, match="newer version"):
        Database(state)

    with contextlib.closing(sqlite3.connect(state.path / NAME)) as other:
        assert other.execute("PRAGMA user_version").fetchone() == (99,)
        assert other.execute("SELECT count(*) FROM requests").fetchone() == (1,)
    assert quarantined_names(state) == set()


def test_a_newer_schema_is_quarantined_after_a_rolled_back_upgrade(state: StateDirectory) -> None:
    fill(state, 1)
    with contextlib.closing(sqlite3.connect(state.path / NAME)) as other:
        other.execute("PRAGMA user_version=99")

    database = Database(state, replace_newer=True)
    database.close()

    assert database.was_quarantined
    assert count_requests(state) == (0, False)
    assert NAME in quarantined_names(state)


def test_directory_in_place_of_the_database_raises_an_error(state: StateDirectory) -> None:
    (state.path / NAME).mkdir()

    with pytest.raises(StateError, match=r"agent\.db is a directory, .*: remove it"):
        Database(state)


def test_locked_database_is_not_set_aside(state: StateDirectory) -> None:
    fill(state, 3)
    with contextlib.closing(sqlite3.connect(state.path / NAME, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StateError, match="locked"):
            Database(state, busy_timeout_s=0.05)

    assert count_requests(state) == (3, False)
    assert quarantined_names(state) == set()


def test_damaged_file_that_cannot_be_moved_raises_an_error(state: StateDirectory) -> None:
    (state.path / NAME).write_bytes(b"garbage" * 1000)
    state.quarantine_path.write_text("in the way")

    with pytest.raises(StateError, match="quarantine is a regular file, not a directory"):
        Database(state)


def fail_after(database: Database, sql: str) -> None:
    """Execute a statement in a transaction, and then raise an error in the transaction."""
    with database.transaction(Failpoint.COUNTED) as connection:
        connection.execute(sql)
        raise KeyError


def test_a_failed_transaction_is_rolled_back(database: Database) -> None:
    with pytest.raises(KeyError):
        fail_after(database, "INSERT INTO counters VALUES ('a', 1)")

    assert database.counters() == {}
    database.increase_counter("a", 2)
    database.increase_counter("a")
    assert database.counters() == {"a": 3}


def test_a_failed_commit_is_rolled_back_and_the_next_transaction_works(database: Database) -> None:
    database.query("PRAGMA foreign_keys=ON")
    with database.transaction(Failpoint.COUNTED) as connection:
        connection.execute("CREATE TABLE parents (id INTEGER PRIMARY KEY)")
        connection.execute(
            "CREATE TABLE children (id REFERENCES parents DEFERRABLE INITIALLY DEFERRED)"
        )

    with (
        pytest.raises(sqlite3.IntegrityError),
        database.transaction(Failpoint.COUNTED) as connection,
    ):
        connection.execute("INSERT INTO children VALUES (1)")  # detected at the commit

    assert database.query("SELECT * FROM children") == []
    database.increase_counter("a")
    assert database.counters() == {"a": 1}


def test_original_error_is_raised_if_sqlite_has_already_rolled_back(database: Database) -> None:
    with pytest.raises(KeyError):
        fail_after(database, "ROLLBACK")  # as SQLite does when the disk is full

    database.increase_counter("a")


def test_quarantine_database_returns_the_number_of_unsent_reports(state: StateDirectory) -> None:
    assert quarantine_database(state) == 0
    fill(state, 3)
    with (
        contextlib.closing(Database(state)) as database,
        database.transaction(Failpoint.COUNTED) as connection,
    ):
        connection.execute("INSERT INTO outbox VALUES ('r', NULL, 'b', 'k', 'o', 0, 'c', x'00')")

    assert quarantine_database(state) == 1, "the number of unsent reports must be returned"

    assert count_requests(state) == (0, False)
    assert NAME in quarantined_names(state)


def test_quarantine_of_a_database_that_cannot_be_moved_raises_an_error(
    state: StateDirectory,
) -> None:
    fill(state, 1)
    state.quarantine_path.write_text("in the way")

    with pytest.raises(StateError, match="quarantine is a regular file, not a directory"):
        quarantine_database(state)
