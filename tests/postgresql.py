"""Starts PostgreSQL servers for tests. A server listens only on a Unix socket, and its directory is
deleted when it stops.

The tests of a process share one server. Each test creates its own database on it. `python -m
tests.postgresql COMMAND…` starts one server for all processes of a command and sets
VENUE_TEST_DATABASE to its URL. The tests of that command then use this server instead of SQLite.
"""

import contextlib
import os
import pwd
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import NullPool, create_engine, make_url, text
from sqlalchemy.orm import Session

PROGRAM_DIRECTORIES = sorted(
    Path("/usr/lib/postgresql").glob("*/bin"), key=lambda each: float(each.parent.name)
)
"""One directory for each installed version of PostgreSQL, the newest last."""
SETTINGS = {"listen_addresses": "''", "max_connections": "300", "shared_buffers": "256MB"}
NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
VARIABLE = "VENUE_TEST_DATABASE"
WAITING = text(
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE wait_event_type = 'Lock' AND datname = current_database()"
)
_shared = contextlib.ExitStack()
_shared_url = ""


def shared_server() -> str:
    """Return the URL of the server that the tests of this process share. The first call starts it.

    ``stop_shared_server`` stops it. Raises LookupError if PostgreSQL is not installed.
    """
    global _shared_url  # noqa: PLW0603 - one server per process
    if VARIABLE in os.environ:
        return os.environ[VARIABLE]
    if not _shared_url:
        _shared_url = _shared.enter_context(postgresql(is_durable=False))
    return _shared_url


def stop_shared_server() -> None:
    global _shared_url  # noqa: PLW0603 - one server per process
    _shared_url = ""
    _shared.close()


@contextlib.contextmanager
def new_database(url: str = "") -> Iterator[str]:
    """Yield the URL of an empty database on the server of ``url``, or on the shared server."""
    server = make_url(url or shared_server())
    name = f"test_{secrets.token_hex(8)}"
    # No pool: a test may kill the processes of the server, and a pooled connection would then fail.
    engine = create_engine(server, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    try:
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        yield server.set(database=name).render_as_string(hide_password=False)
        with engine.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    finally:
        engine.dispose()


def is_transaction_waiting(session: Session) -> bool:
    """Return whether a transaction of this database waits for a lock."""
    return session.scalars(WAITING).one() > 0


@contextlib.contextmanager
def postgresql(*, is_durable: bool = True) -> Iterator[str]:
    """Start a separate server, and yield the URL of its empty database.

    Raises LookupError if PostgreSQL is not installed.
    """
    if not PROGRAM_DIRECTORIES:
        raise LookupError("no /usr/lib/postgresql/*/bin")
    programs = PROGRAM_DIRECTORIES[-1]
    # PostgreSQL refuses to run as root. getpwnam raises KeyError, which is a LookupError, if the
    # package's user does not exist.
    owner = pwd.getpwnam("postgres") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    # The path of a Unix socket is limited to about 100 characters (unix(7)), and the path of the
    # checkout may be longer.
    directory = Path(tempfile.mkdtemp(prefix="venue-postgresql-"))
    try:
        os.chown(directory, owner.pw_uid, owner.pw_gid)
        data = directory / "data"
        _run(owner, programs / "initdb", "-D", data, "-U", "venue", "-A", "trust", "-E", "UTF8")
        settings = SETTINGS if is_durable else SETTINGS | NOT_DURABLE
        options = [f"-c{name}={value}" for name, value in settings.items()]
        # `pg_ctl start` returns when the server is ready.
        control = (programs / "pg_ctl", "-D", data, "-w", "-l", directory / "log")
        _run(owner, *control, "-o", f"-k {directory} {' '.join(options)}", "start")
        try:
            _run(owner, programs / "createdb", "-h", directory, "-U", "venue", "venue")
            yield f"postgresql+psycopg://venue@/venue?host={directory}"
        finally:
            _run(owner, *control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _user_options(owner: pwd.struct_passwd) -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": [], "cwd": "/"}


def _run(owner: pwd.struct_passwd, *words: str | Path) -> None:
    result = subprocess.run(
        words, **_user_options(owner), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if result.returncode != 0:
        raise RuntimeError(f"{words[0]} failed: {result.stdout.decode(errors='replace')[-500:]}")


def main(command: list[str]) -> int:
    with postgresql(is_durable=False) as url:
        environment = os.environ | {VARIABLE: url}
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
