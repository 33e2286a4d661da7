"""The SQLite file of the agent: journal, outbox, sent reports, and the record of the connection.

With WAL and synchronous=FULL, a committed transaction survives a power loss
(sqlite.org/pragma.html#pragma_synchronous). A transaction that is not durable is synced together
with the next durable transaction. Until then, a power loss can undo it, but a crash of the process
cannot. The file is consistent in both cases. An unreadable file is quarantined and replaced,
because the daemon must start on an unattended machine.
"""

import contextlib
import json
import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final, Literal, TypeVar
from uuid import UUID

from agent.adapters.failpoints import Failpoint, passing
from agent.adapters.storage.state import StateDirectory
from agent.errors import StateError, as_state_error
from agent.wire.codec import read_row
from agent.wire.validation import ValidationError

T = TypeVar("T")

log = logging.getLogger(__name__)

NAME: Final = "agent.db"
FILES: Final = (NAME, f"{NAME}-wal", f"{NAME}-shm", f"{NAME}-journal")
"""The files that SQLite opens for this database (sqlite.org/tempfiles.html)."""
SCHEMA_VERSION: Final = 1
BUSY_TIMEOUT_S: Final = 5.0

_NOT_FIXED_BY_A_NEW_FILE: Final = frozenset(
    {
        sqlite3.SQLITE_AUTH, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY,
    }
)  # fmt: skip
"""Errors at opening that a new file would not fix. After such an error, the file is not
quarantined."""

_ROWS: Final = {"requests": ("journal", "request_id"), "outbox": ("outbox", "report_id")}
"""For each table: its name in messages, and the column that contains the id."""

_SCHEMA: Final = """
CREATE TABLE requests (
    request_id TEXT PRIMARY KEY,
    binding_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    running_acknowledged INTEGER NOT NULL DEFAULT 0,
    received_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    report_id TEXT,
    outcome TEXT,
    detail TEXT
) STRICT;
CREATE INDEX requests_by_state ON requests (state, received_at);
CREATE TABLE outbox (
    report_id TEXT PRIMARY KEY,
    request_id TEXT,
    binding_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    outcome TEXT NOT NULL,
    tier INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE INDEX outbox_by_age ON outbox (created_at);
CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT;
"""
"""The columns of ``requests`` are the fields of `journal.Entry`. The columns of ``outbox`` are the
fields of `outbox.WaitingReport`. Times are ISO 8601 in UTC."""


class NewerDatabase(StateError):
    """A newer version of the agent has changed the layout of the file."""


class Database:
    """A connection with explicit transactions.

    Args:
        replace_newer: whether a file of a newer version is quarantined and replaced. Otherwise
            NewerDatabase is raised.

    Raises StateError if the file can be neither opened nor replaced by a new file.
    """

    def __init__(
        self,
        state: StateDirectory,
        *,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        replace_newer: bool = False,
    ) -> None:
        self._path = state.path / NAME
        self._busy_timeout_s = busy_timeout_s
        self._state = state
        self.on_row_quarantined: Callable[[], None] = lambda: None
        """Called after rows were quarantined."""
        self.was_quarantined = False
        try:
            state.require_own(*FILES)
            self._connection = self._open()
        except NewerDatabase as error:
            if not replace_newer:
                raise
            log.error(
                "%s; the file is quarantined, because the newer version was rolled back", error
            )
            self._connection = self._replace_file()
        except OSError as error:
            raise StateError(f"{self._path} cannot be opened: {error.strerror}") from None
        except sqlite3.DatabaseError as error:
            if _primary_code(error) in _NOT_FIXED_BY_A_NEW_FILE:
                raise StateError(f"{self._path} cannot be opened: {error}") from None
            log.error("the database cannot be read (%s) and is quarantined", error)
            self._connection = self._replace_file()

    def _replace_file(self) -> sqlite3.Connection:
        """Quarantine the file, and create a new one."""
        self.was_quarantined = True
        try:
            _quarantine_files(self._state)
            return self._open()
        except (OSError, sqlite3.DatabaseError) as error:
            raise StateError(f"{self._path} cannot be replaced: {error}") from None

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=self._busy_timeout_s, isolation_level=None)
        sqlite3.register_adapter(UUID, str)
        sqlite3.register_adapter(datetime, datetime.isoformat)
        try:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA cache_size=-256")  # KiB
            if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise sqlite3.DatabaseError("the file is damaged")
            self._migrate(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _migrate(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise NewerDatabase(
                f"{self._path} belongs to a newer version of the agent: update the agent"
            )
        if version < SCHEMA_VERSION:
            connection.executescript(
                f"BEGIN; {_SCHEMA} PRAGMA user_version={SCHEMA_VERSION}; COMMIT;"
            )

    @contextlib.contextmanager
    def transaction(
        self, failpoint: Failpoint, *, durably: bool = True
    ) -> Iterator[sqlite3.Connection]:
        """Run the body in a transaction: commit it, or roll it back if the body raises.

        With ``durably=False``, a power loss can undo the transaction until the next durable commit.
        """
        with passing(failpoint), self._synchronous("FULL" if durably else "NORMAL"):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # After some errors, SQLite has already rolled back
                # (sqlite.org/lang_transaction.html).
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _synchronous(self, mode: Literal["FULL", "NORMAL"]) -> Iterator[None]:
        """Set PRAGMA synchronous to ``mode`` while the body runs."""
        if mode == "FULL":
            yield
            return
        self._connection.execute(f"PRAGMA synchronous={mode}")
        try:
            yield
        finally:
            self._connection.execute("PRAGMA synchronous=FULL")

    def query(self, sql: str, parameters: tuple[object, ...] = ()) -> list[sqlite3.Row]:
        """Return the rows of a query, outside a transaction."""
        return self._connection.execute(sql, parameters).fetchall()

    def read_or_quarantine(
        self, table: Literal["requests", "outbox"], row: sqlite3.Row, row_type: type[T]
    ) -> T | None:
        """Convert a row to ``row_type``. Quarantine a row that cannot be read, and return None."""
        try:
            return read_row(dict(row), row_type)
        except ValidationError as error:
            name, key = _ROWS[table]
            log.error("a row of the %s cannot be read (%s) and is quarantined", name, error)
        self._state.quarantine(f"{name}-row.json", json.dumps(dict(row), default=repr).encode())
        with self.transaction(Failpoint.ROW_SET_ASIDE) as connection:
            connection.execute(f"DELETE FROM {table} WHERE {key} IS ?", (row[key],))  # noqa: S608
        self._note_quarantined(1)
        return None

    def quarantine_tables(self, name: str, tables: Sequence[str], failpoint: Failpoint) -> None:
        """Copy the rows of ``tables`` to a quarantined file ``name``, and drop the tables."""
        table_names = {row[0] for row in self.query("SELECT name FROM sqlite_schema")}
        existing_tables = [table for table in tables if table in table_names]
        rows = {
            table: [tuple(row) for row in self.query(f"SELECT * FROM {table}")]  # noqa: S608
            for table in existing_tables
        }
        self._state.quarantine(name, json.dumps(rows, default=repr).encode())
        with self.transaction(failpoint) as connection:
            for table in existing_tables:
                connection.execute(f"DROP TABLE {table}")
        self._note_quarantined(sum(map(len, rows.values())))

    def _note_quarantined(self, rows: int) -> None:
        self.increase_counter("rows_quarantined", rows)
        self.on_row_quarantined()

    def increase_counter(self, name: str, by: int = 1) -> None:
        """Add ``by`` to the persistent counter ``name``."""
        with self.transaction(Failpoint.COUNTED) as connection:
            connection.execute(
                "INSERT INTO counters VALUES (?, ?)"
                " ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
                (name, by),
            )

    def counters(self) -> dict[str, int]:
        """Return the persistent counters by name."""
        return {row["name"]: row["value"] for row in self.query("SELECT * FROM counters")}

    def close(self) -> None:
        self._connection.close()


def is_damaged(error: Exception) -> bool:
    """Return whether SQLite reports with ``error`` that the file is damaged."""
    codes = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
    return isinstance(error, sqlite3.Error) and _primary_code(error) in codes


def _primary_code(error: sqlite3.Error) -> int | None:
    """Return SQLite's primary error code (sqlite.org/rescode.html).

    Returns None if this module raised the error.
    """
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def connect_to_read(
    state: StateDirectory, *, timeout_s: float = BUSY_TIMEOUT_S
) -> sqlite3.Connection:
    """Open the file read-only. This is possible while the daemon runs.

    Raises sqlite3.Error, and StateError if the file is not the agent's own.
    """
    state.require_own(*FILES)
    uri = f"{(state.path / NAME).absolute().as_uri()}?mode=ro"
    return sqlite3.connect(uri, uri=True, timeout=timeout_s)


@contextlib.contextmanager
def opened_to_read(state: StateDirectory) -> Iterator[sqlite3.Connection | None]:
    """Open the file as `connect_to_read` does, and close it when the body of the ``with`` ends.

    Yields None if the file is missing. Raises StateError, also if the body cannot read the rows.
    """
    path = state.path / NAME
    try:
        state.require_own(*FILES)
        if not path.exists():
            yield None
            return
        with contextlib.closing(connect_to_read(state)) as connection:
            yield connection
    except (sqlite3.Error, OSError, ValueError, OverflowError) as error:
        raise StateError(f"{path} cannot be read: {error}") from None


def _quarantine_files(state: StateDirectory) -> None:
    state.quarantine_file(*(state.path / name for name in (NAME, f"{NAME}-wal", f"{NAME}-shm")))


def quarantine_database(state: StateDirectory) -> int:
    """Quarantine the whole file, because it belongs to another device or service.

    Returns the number of unsent reports in it. Raises StateError.
    """
    path = state.path / NAME
    state.require_own(*FILES)
    if not path.exists():
        return 0
    database = Database(state)
    unsent = int(database.query("SELECT count(*) FROM outbox")[0][0])
    database.close()
    with as_state_error(f"{path} cannot be quarantined"):
        _quarantine_files(state)
    return unsent
