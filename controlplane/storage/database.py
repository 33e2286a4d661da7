"""Opens the database and runs transactions that read or write.

A transaction is a function that takes a session. ``write`` calls the function again after a
conflict with another writer, such as two enrollments of one instance. The function must therefore
have no effects outside the database.

Settings of SQLite:

- WAL, so that readers and a writer do not wait for each other.
- synchronous=FULL, because a device deletes its copy of a report once the service has confirmed it.
- BEGIN IMMEDIATE for transactions that write. A transaction that starts with a read and then writes
  cannot wait for the lock of another writer: SQLite refuses it at once.
- A transaction waits at most ``busy_timeout_s`` for the lock of another program. If it does not get
  the lock, later transactions do not wait: they fail at once until a write gets the lock again.
  Otherwise each waiting transaction would occupy a thread.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, OperationalError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.compiler import SQLCompiler, ilike_case_insensitive

from controlplane.storage.migrations.upgrade import DatabaseVersionError, upgrade

__all__ = ["Database", "DatabaseBusyError", "DatabaseVersionError", "parse_url", "sqlite_file"]

Result = TypeVar("Result")
WRITE_ATTEMPTS = 4
BUSY_TIMEOUT_S = 5
LAYOUT_LOCK = 0x76656E7565
"""Key of the advisory lock for creating and upgrading tables: "venue" as ASCII bytes."""
SQLITE_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON")
POSTGRESQL_OPTIONS = {
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""Parameters of libpq (PostgreSQL, 34.1.2). Times are in seconds, ``tcp_user_timeout`` is in
milliseconds. Without these parameters, a connection to a machine that was switched off waits for a
quarter of an hour."""
POSTGRESQL_SETTINGS = {
    "tcp_keepalives_idle": "5s",
    "tcp_keepalives_interval": "2s",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "10s",
}
"""Settings of the server for each connection (PostgreSQL, 20.3.2). Without them, if the host of the
service loses its network during a transaction, the server keeps the locks for two hours. One
transaction can lock all devices.
"""
SERIALIZATION_STATES = frozenset({"40001", "40P01"})
"""SQLSTATE serialization_failure and deadlock_detected (PostgreSQL, appendix A)."""


class DatabaseBusyError(Exception):
    """A transaction got no lock in time, or conflicted with other writers in each of its
    `WRITE_ATTEMPTS` attempts.
    """


class Database:
    """An open database with the tables of this version.

    Args:
        url: A database URL of SQLAlchemy, or the path of an SQLite file.
        connections: How many connections are kept open for later transactions.
        busy_timeout_s: How long a transaction waits for SQLite's lock.
    """

    postgresql: URL | None = None
    """The URL of the database if it is PostgreSQL, which can also pass messages between processes
    (`controlplane.storage.notifications`). None on SQLite."""

    def __init__(
        self, url: str, *, connections: int = 8, busy_timeout_s: float = BUSY_TIMEOUT_S
    ) -> None:
        parsed_url = parse_url(url)
        self._is_sqlite = parsed_url.get_backend_name() == "sqlite"
        if parsed_url.get_backend_name() == "postgresql":
            self.postgresql = parsed_url
        if self._is_sqlite:
            if not parsed_url.database or parsed_url.database == ":memory:":
                raise ArgumentError("an SQLite database needs the path of a file")
            _create_private_file(Path(parsed_url.database))
        self._busy_timeout_s = busy_timeout_s
        # Whether the last attempt to get SQLite's lock failed, because another program kept it.
        self._is_locked = False
        self._engine = self._open(parsed_url, connections)
        # SQLite polls its lock at growing intervals, so a thread that waits for it may wait far too
        # long. Threads of one process therefore take `_write_lock` first, which is fairer.
        self._write_lock = threading.Lock()
        try:
            self._upgrade()
        except BaseException:
            self.close()
            raise

    def read(self, work: Callable[[Session], Result]) -> Result:
        """Run ``work`` in a transaction that only reads. Raises what ``work`` raises."""
        with self._convert_lock_errors(), Session(self._engine, expire_on_commit=False) as session:
            if self._is_sqlite:
                self._begin_sqlite(session.connection(), "BEGIN")
            return work(session)

    def write(self, work: Callable[[Session], Result]) -> Result:
        """Run ``work`` in a transaction and commit it. Raises what ``work`` raises."""
        for attempt in range(1, WRITE_ATTEMPTS + 1):
            try:
                return self._write_once(work)
            except DBAPIError as error:
                if not _is_conflict(error):
                    raise
                if attempt == WRITE_ATTEMPTS:
                    raise DatabaseBusyError("the database is busy: try again") from error
        raise AssertionError("unreachable")

    def close(self) -> None:
        self._engine.dispose()

    def _write_once(self, work: Callable[[Session], Result]) -> Result:
        with (
            self._exclusive_write(),
            self._convert_lock_errors(),
            Session(self._engine, expire_on_commit=False) as session,
            session.begin(),
        ):
            if self._is_sqlite:
                self._begin_sqlite(session.connection(), "BEGIN IMMEDIATE")
            self._is_locked = False
            return work(session)

    @contextmanager
    def _exclusive_write(self) -> Iterator[None]:
        """Let only one thread of this process write to SQLite at a time."""
        if not self._is_sqlite:
            yield
            return
        if not self._write_lock.acquire(timeout=self._lock_timeout_s):
            raise DatabaseBusyError("the database is busy: try again")
        try:
            yield
        finally:
            self._write_lock.release()

    @contextmanager
    def _convert_lock_errors(self) -> Iterator[None]:
        """Raise DatabaseBusyError if another program keeps SQLite's lock for too long."""
        try:
            yield
        except (OperationalError, sqlite3.OperationalError) as error:
            if not _is_lock_error(error):
                raise
            self._is_locked = True
            message = "the database is locked by another program: try again"
            raise DatabaseBusyError(message) from error

    @property
    def _lock_timeout_s(self) -> float:
        """Return how long a transaction waits for a lock."""
        return 0 if self._is_locked else self._busy_timeout_s

    def _open(self, url: URL, connections: int) -> Engine:
        sqlite_options = {"timeout": self._busy_timeout_s, "check_same_thread": False}
        engine = create_engine(
            url,
            pool_size=connections,
            max_overflow=2,
            pool_pre_ping=not self._is_sqlite,
            connect_args=sqlite_options if self._is_sqlite else connection_options(url),
        )
        event.listen(engine, "connect", _prepare_sqlite if self._is_sqlite else _prepare_postgresql)
        return engine

    def _begin_sqlite(self, connection: Connection, statement: str) -> None:
        # An event of SQLAlchemy would do the same, but would make every later statement slower.
        timeout_s, driver = self._lock_timeout_s, connection.connection.driver_connection
        assert driver is not None  # noqa: S101 - the connection is open
        if connection.info.get("busy_timeout_s", self._busy_timeout_s) != timeout_s:
            driver.execute(f"PRAGMA busy_timeout = {round(timeout_s * 1000)}").close()
            connection.info["busy_timeout_s"] = timeout_s
        driver.execute(statement).close()

    def _upgrade(self) -> None:
        with self._engine.begin() as connection:
            if self._is_sqlite:
                self._begin_sqlite(connection, "BEGIN IMMEDIATE")
            else:
                # Without the lock, processes that start together would create the same tables.
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LAYOUT_LOCK})
            upgrade(connection)


def connection_options(url: URL) -> dict[str, int]:
    """Return the `POSTGRESQL_OPTIONS` that ``url`` does not set itself."""
    return {name: value for name, value in POSTGRESQL_OPTIONS.items() if name not in url.query}


def parse_url(text: str) -> URL:
    """Return the URL in ``text``. A text without a scheme is the path of an SQLite file."""
    if "://" in text:
        return make_url(text)
    return URL.create("sqlite", database=str(Path(text).expanduser()))


def sqlite_file(text: str) -> Path | None:
    """Return the path of the file if ``text`` names an SQLite database, otherwise None."""
    url = parse_url(text)
    if url.get_backend_name() != "sqlite" or not url.database:
        return None
    return Path(url.database)


def _prepare_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    # The driver must not begin transactions by itself, because `Database` begins them.
    connection.isolation_level = None
    for pragma in SQLITE_PRAGMAS:
        connection.execute(f"PRAGMA {pragma}").close()


def _prepare_postgresql(connection: Any, _record: Any) -> None:
    # Unlike parameters of libpq, these statements also work through a connection pooler.
    settings = (f"SET {name} = '{value}'" for name, value in POSTGRESQL_SETTINGS.items())
    connection.execute("; ".join(settings))
    connection.commit()  # a rollback would reset them


@compiles(ilike_case_insensitive, "sqlite")
def _operand(element: ilike_case_insensitive, compiler: SQLCompiler, **options: Any) -> str:
    """Return the SQL of an operand of ``icontains`` and ``ilike``, without ``lower()``.

    In SQLite, LIKE and ``lower()`` both ignore the case of ASCII letters only. Without ``lower()``,
    a search takes less than half the time.
    """
    return compiler.process(element.element, **options)


def _is_lock_error(error: Exception) -> bool:
    """Return whether SQLite could not get a lock (https://www.sqlite.org/rescode.html)."""
    code = getattr(getattr(error, "orig", error), "sqlite_errorcode", 0)
    # The low byte of an extended code is its primary code.
    return code & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _is_conflict(error: DBAPIError) -> bool:
    """Return whether the transaction conflicted with another writer, so that it can be repeated."""
    if isinstance(error, IntegrityError):
        return True
    return getattr(error.orig, "sqlstate", None) in SERIALIZATION_STATES


def _create_private_file(path: Path) -> None:
    """Create the file with access for its owner only: it contains the reports of the venues."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
