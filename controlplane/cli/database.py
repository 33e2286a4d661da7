"""``venue-control backup``, ``restore`` and ``database copy``."""

import argparse
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from controlplane.cli.chosen_database import DATABASE_ERRORS, chosen_database, database_error
from controlplane.client.errors import CommandError, UsageError
from controlplane.clock import system_clock
from controlplane.storage import backup as backups
from controlplane.storage.copy import NotEmptyError, copy_rows
from controlplane.storage.database import Database, parse_url, sqlite_file

BYTES_OF_A_MEGABYTE = 1_000_000


def backup(options: argparse.Namespace) -> None:
    path = Path(options.file)
    choice = chosen_database(options.database)
    database = _require_sqlite_file(choice.url, "pg_dump --format=custom")
    if not database.exists():
        raise UsageError(f"there is no database at {database}", "--database selects another.")
    try:
        # The user of the command owns the new file. The database is read as the database's owner.
        with (
            backups.write_atomically(path) as out,
            choice.as_its_owner(),
            backups.snapshot(database) as copied_file,
            copied_file.open("rb") as source,
        ):
            shutil.copyfileobj(source, out)
    except (OSError, sqlite3.Error) as error:
        raise CommandError(f"no backup was made: {_reason(error)}") from error
    size = path.stat().st_size / BYTES_OF_A_MEGABYTE
    print(f"wrote {path}, {size:.1f} MB, with everything committed before the backup began")


def restore(options: argparse.Namespace) -> None:
    choice = chosen_database(options.database)
    database = _require_sqlite_file(choice.url, "pg_restore")
    try:
        with Path(options.file).open("rb") as source, choice.as_its_owner():
            previous_file = backups.restore(source, database, system_clock())
    except backups.BackupError as error:
        raise UsageError(str(error), error.hint) from error
    except (OSError, sqlite3.Error) as error:
        raise CommandError(f"nothing was restored: {_reason(error)}") from error
    print(f"restored {database}")
    if previous_file is not None:
        print(f"the previous database is kept as {previous_file}")


def copy(options: argparse.Namespace) -> None:
    file = _file_of(options.source)
    if file is not None and not file.exists():
        raise UsageError(f"there is no database at {file}")
    try:
        with (
            closing(Database(options.source, connections=1)) as source,
            closing(Database(options.target, connections=1)) as target,
        ):
            counts = copy_rows(
                source, target, lambda name, rows: print(f"{name:12} {rows:>9,} rows")
            )
    except NotEmptyError as error:
        raise UsageError(
            f"nothing was copied: {error}",
            "Use a target without keys and devices.",
        ) from error
    except DATABASE_ERRORS as error:
        raise database_error(error) from error
    print(f"copied {sum(counts.values()):,} rows; use --database to select the new database")


def _require_sqlite_file(url: str, alternative: str) -> Path:
    file = _file_of(url)
    if file is None:
        kind = parse_url(url).get_backend_name()
        raise UsageError(
            f"this command is for SQLite, but the database is {kind}",
            f'Use {alternative}: see "Backup" in docs/service-install.md.',
        )
    return file


def _file_of(url: str) -> Path | None:
    try:
        return sqlite_file(url)
    except SQLAlchemyError as error:
        raise database_error(error) from error


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)
