"""Creates backups of an SQLite database while processes write to it, and restores backups.

Source: https://www.sqlite.org/backup.html
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from controlplane.storage.migrations.upgrade import DatabaseVersionError, require_supported

_BUSY_S = 5
_LOCKED = "locked"


class BackupError(Exception):
    """The backup cannot be restored. ``hint`` is what the user can do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@contextlib.contextmanager
def snapshot(database: Path) -> Iterator[Path]:
    """Yield a copy of the database, in a temporary file beside it.

    The copy contains everything that was committed before the call. Raises sqlite3.Error, OSError.
    """
    with tempfile.TemporaryDirectory(prefix=".backup-", dir=database.parent) as directory:
        copy = Path(directory) / "copy.db"
        # This is one read transaction. Other processes can write meanwhile, and their writes do not
        # restart the copy. With the backup API of SQLite, each write would restart the copy.
        with closing(
            sqlite3.connect(f"{database.absolute().as_uri()}?mode=rw", uri=True)
        ) as reader:
            reader.execute("VACUUM INTO ?", (str(copy),))
        yield copy


@contextlib.contextmanager
def write_atomically(path: Path) -> Iterator[BinaryIO]:
    """Yield a temporary file that is moved to ``path`` when the `with` block ends.

    Only the owner of the file can read it. If the block raises an error, no file remains. Raises
    FileExistsError if ``path`` exists.
    """
    if os.path.lexists(path):
        raise FileExistsError(f"{path} exists already")
    file, temporary_path = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(file, "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        try:
            os.link(temporary_path, path)  # unlike a rename, a link cannot replace a file
        except FileExistsError:
            raise
        except OSError:  # the file system has no hard links, like exFAT
            Path(temporary_path).rename(path)
    finally:
        Path(temporary_path).unlink(missing_ok=True)
    sync_directory(path.parent)


def restore(backup: BinaryIO, database: Path, now: datetime) -> Path | None:
    """Replace the content of ``database`` with that of ``backup``, in one transaction.

    Returns:
        The path of a copy of the previous database, or None if ``database`` was new or empty.

    Raises:
        BackupError, sqlite3.Error, OSError
    """
    database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".restore-", dir=database.parent) as directory:
        copy = Path(directory) / "copy.db"
        with copy.open("xb") as out:
            shutil.copyfileobj(backup, out)
        with closing(sqlite3.connect(copy)) as source:
            _require_service_database(source)
            os.close(os.open(database, os.O_CREAT | os.O_RDWR, 0o600))  # SQLite would use the umask
            with closing(sqlite3.connect(database, timeout=_BUSY_S)) as target:
                _require_not_in_use(target)
                previous_file = _save_previous(target, database, now)
                source.backup(target)
    return previous_file


def _require_service_database(source: sqlite3.Connection) -> None:
    try:
        # The check ends at the first error.
        (result,) = source.execute("PRAGMA integrity_check(1)").fetchone()
        if result != "ok":
            raise BackupError(f"the backup is damaged: {result}", "Use an older backup.")
        row = source.execute("SELECT version_num FROM alembic_version").fetchone()
        if row is None:
            raise sqlite3.DatabaseError("it has no layout version")
    except sqlite3.DatabaseError as error:
        raise BackupError(
            f"the file is not a backup of the service: {error}",
            "`venue-control backup FILE` creates one.",
        ) from error
    try:
        require_supported(row[0])
    except DatabaseVersionError as error:
        raise BackupError(f"the backup cannot be used: {error}", error.hint) from error


def _require_not_in_use(target: sqlite3.Connection) -> None:
    """Raise BackupError if another process has the database open.

    In WAL mode, an exclusive lock fails while another process has the database open.
    """
    try:
        target.execute("PRAGMA locking_mode=EXCLUSIVE")
        target.execute("BEGIN EXCLUSIVE")
        target.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        if _LOCKED not in str(error):
            raise
        raise BackupError(
            "the database is in use, and a running service would continue with cached data",
            "Stop the service first: venue-control service stop",
        ) from error


def _save_previous(target: sqlite3.Connection, database: Path, now: datetime) -> Path | None:
    if not target.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
        return None
    previous_file = database.with_name(f"{database.name}.before-{now:%Y%m%dT%H%M%SZ}")
    target.execute("VACUUM INTO ?", (str(previous_file),))
    previous_file.chmod(0o600)
    return previous_file


def sync_directory(path: Path) -> None:
    """Write the new and changed file names of a directory to the disk.

    Windows cannot sync directories, so nothing is done there.
    """
    if os.name != "posix":
        return
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
