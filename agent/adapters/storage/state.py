"""The state directory. It is private, and one agent at a time can lock it.

It contains a quarantine for unreadable files and rejected reports. Before a file of the state
directory is opened, the path to the directory is checked. `safe_file` then opens the file.
"""

import contextlib
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from agent.adapters.accounts.trusted_path import ROOT, Weakness, weakness_of
from agent.adapters.storage.safe_file import (
    UnsafeFile,
    open_safely,
    read_safely,
    require_own,
    require_own_directory,
)
from agent.errors import StateError, as_state_error

LOCK_NAME = "agent.lock"
QUARANTINE_NAME = "quarantine"
QUARANTINE_MAX_FILES = 50
LOCK_TRIES = 5
LOCK_PAUSE_S = 0.05
QUARANTINE_MAX_BYTES = 128 * 2**20
PRIVATE_DIRECTORY = 0o700
PID_MAX_BYTES = 32
LEFTOVERS = (
    ".status.json.*", ".device.json.*", ".identity.pem.*", ".printers.json.*", ".probe.*"
)  # fmt: skip
"""Patterns of the names of temporary files that `write_atomically` and `prepare` create."""


class StateDirectory:
    """The directory of the agent's state. Most methods raise StateError."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def quarantine_path(self) -> Path:
        return self.path / QUARANTINE_NAME

    def weakness(self) -> Weakness | None:
        """Return how other users could change the directory's content, or None.

        Root, the user of this process and the directory's owner are trusted. Raises OSError if the
        path cannot be checked.
        """
        if sys.platform == "win32":
            return None  # `service install` restricts access; st_mode does not show this on Windows
        return weakness_of(self.path, {ROOT, os.geteuid(), self.path.stat().st_uid})

    def require_protected(self) -> None:
        """Raise StateError if other users could change the directory's content.

        A directory that does not exist is accepted.
        """
        try:
            weakness = self.weakness()
        except OSError:
            return  # missing or not readable: a later operation fails with a better error
        if weakness is not None:
            raise StateError(
                f"the state directory {self.path} is not safe: {weakness.detail}\n"
                f"to use it: {weakness.fix}"
            )

    def prepare(self) -> None:
        """Create the directory, and check that this process can write files in it."""
        with as_state_error(f"the state directory {self.path} cannot be written"):
            self.path.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
            self.require_protected()
            handle, probe = tempfile.mkstemp(dir=self.path, prefix=".probe.")
            os.close(handle)
            Path(probe).unlink()

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the directory while the body runs.

        Raises StateError if another agent has locked it. The message contains the process id of the
        other agent.
        """
        with as_state_error(f"{self.path / LOCK_NAME} cannot be written"):
            file = os.fdopen(self._open(LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_APPEND), "a+b")
        try:
            if not _retry_lock(file):
                pid = read_pid(self.path)
                process = f" (process {pid})" if pid else ""
                raise StateError(f"another agent{process} already uses {self.path}")
            file.truncate(0)
            file.write(str(os.getpid()).encode())
            file.flush()
            self._remove_leftovers()
            yield
        finally:
            file.close()

    def _remove_leftovers(self) -> None:
        """Remove temporary files of an agent that was killed during a write."""
        for pattern in LEFTOVERS:
            for path in self.path.glob(pattern):
                with contextlib.suppress(OSError):
                    path.unlink()

    def read(self, name: str, max_bytes: int) -> bytes:
        """Return the content of a file. Raises OSError, and StateError if it is unsafe."""
        self.require_protected()
        return read_safely(self.path / name, max_bytes)

    def require_own(self, *names: str) -> None:
        """Raise StateError if one of the files exists and is unsafe.

        Call this before SQLite opens the files by their names.
        """
        self.require_protected()
        for name in names:
            require_own(self.path / name)

    def _open(self, name: str, flags: int) -> int:
        self.require_protected()
        return open_safely(self.path / name, flags)

    def holder(self) -> int | None:
        """Return the process id of the agent that has locked the directory.

        Returns 0 if this process id is unknown, and None if the directory is not locked.
        """
        try:
            file = os.fdopen(self._open(LOCK_NAME, os.O_RDWR), "r+b")
        except OSError:
            return _pid_when_denied(self.path)
        with file:
            return None if _try_lock(file) else (read_pid(self.path) or 0)

    def quarantine_file(self, *paths: Path) -> Path:
        """Move files to the quarantine, and return the new path of the first file."""
        prefix = self._quarantine_prefix()
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                path.replace(f"{prefix}{path.name}")
        self._trim_quarantine()
        return Path(f"{prefix}{paths[0].name}")

    def quarantine(self, name: str, content: bytes) -> Path:
        """Store ``content`` in the quarantine, for support."""
        target = Path(f"{self._quarantine_prefix()}{name}")
        with os.fdopen(open_safely(target, os.O_WRONLY | os.O_CREAT), "wb") as file:
            file.write(content)
        self._trim_quarantine()
        return target

    def _quarantine_prefix(self) -> str:
        """Create the quarantine, and return the start of the path of a new file in it."""
        self.require_quarantine()
        self.quarantine_path.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
        return str(self.quarantine_path / datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f-"))

    def require_quarantine(self) -> None:
        """Raise StateError if the quarantine exists and is not the agent's own directory."""
        self.require_protected()
        require_own_directory(self.quarantine_path)

    def _trim_quarantine(self) -> None:
        """Delete the oldest files that exceed the limits. The newest file is always kept."""
        # The name of a file begins with the time.
        newest_first = sorted(self.quarantine_path.iterdir(), reverse=True)
        total = 0
        for number, file in enumerate(newest_first):
            status = file.lstat()
            total += status.st_size
            is_over = number >= QUARANTINE_MAX_FILES or total > QUARANTINE_MAX_BYTES
            if number and is_over and not stat.S_ISDIR(status.st_mode):
                file.unlink(missing_ok=True)

    def free_bytes(self) -> int:
        """Return the free space on the directory's disk for unprivileged users, in bytes."""
        return shutil.disk_usage(self.path).free


def read_pid(state_dir: Path) -> int | None:
    """Return the process id in the lock file, or None. The process might have ended."""
    try:
        return int(read_safely(state_dir / LOCK_NAME, PID_MAX_BYTES))
    except (OSError, UnsafeFile, ValueError):
        return None


def _pid_when_denied(state_dir: Path) -> int | None:
    """Return the process id in the lock file, if a process with this id exists.

    Used if this process cannot open the lock file for writing. On Windows, the id is returned
    without a check.
    """
    pid = read_pid(state_dir)
    if pid is None or sys.platform == "win32":
        return pid
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass  # the process exists, and belongs to another user
    return pid


def _retry_lock(file: BinaryIO) -> bool:
    """Lock the file, and return whether this succeeded.

    Retries for a short time, because `venue-agent status` locks the file briefly to test the lock.
    """
    for _ in range(LOCK_TRIES - 1):
        if _try_lock(file):
            return True
        time.sleep(LOCK_PAUSE_S)
    return _try_lock(file)


def _try_lock(file: BinaryIO) -> bool:
    if sys.platform == "win32":
        import msvcrt

        # On Windows, other processes cannot read locked bytes. Therefore the locked byte is far
        # behind the process id, which they must be able to read.
        file.seek(1 << 20)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            file.seek(0)
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
