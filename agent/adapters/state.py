"""The state directory: made private, held by one agent at a time, with a place for wreckage."""

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from agent.errors import StateError

LOCK_NAME = "agent.lock"
QUARANTINE_NAME = "quarantine"
QUARANTINE_MAX_FILES = 50
LOCK_TRIES = 5
LOCK_PAUSE_S = 0.05
QUARANTINE_MAX_BYTES = 128 * 2**20
PRIVATE_DIRECTORY = 0o700
LEFTOVERS = (".status.json.*", ".device.json.*", ".identity.pem.*", ".probe.*")
"""Names of temporary files (adapters.atomic_file)."""


class StateDirectory:
    """A directory of the agent's own. Raises StateError, in words for people."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def quarantine_path(self) -> Path:
        return self.path / QUARANTINE_NAME

    def prepare(self) -> None:
        """Make the directory and see that it can be written."""
        try:
            self.path.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
            probe = self.path / f".probe.{os.getpid()}"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise StateError(
                f"the state directory {self.path} cannot be written: {error.strerror}"
            ) from None

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Keep every other agent out while the body runs.

        Raises StateError with the other one's process id.
        """
        try:
            file = (self.path / LOCK_NAME).open("a+b")
        except OSError as error:
            raise StateError(
                f"{self.path / LOCK_NAME} cannot be written: {error.strerror}"
            ) from None
        try:
            if not _try_lock_for_a_moment(file):
                raise StateError(
                    f"another agent{_named(read_pid(self.path))} already uses {self.path}"
                )
            file.truncate(0)
            file.write(str(os.getpid()).encode())
            file.flush()
            self._remove_leftovers()
            yield
        finally:
            file.close()

    def _remove_leftovers(self) -> None:
        """Remove what an agent that was killed in the middle of a write has left."""
        for pattern in LEFTOVERS:
            for path in self.path.glob(pattern):
                with contextlib.suppress(OSError):
                    path.unlink()

    def holder(self) -> int | None:
        """Return the process id of the agent that holds the directory now, or None."""
        try:
            file = (self.path / LOCK_NAME).open("r+b")
        except OSError:
            return _pid_when_denied(self.path)
        with file:
            return None if _try_lock(file) else (read_pid(self.path) or 0)

    def set_aside(self, *paths: Path) -> Path:
        """Move unreadable files into the quarantine and return where the first one went."""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
        self.quarantine_path.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
        target = self.quarantine_path / f"{stamp}-{paths[0].name}"
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                path.replace(self.quarantine_path / f"{stamp}-{path.name}")
        self._trim_quarantine()
        return target

    def keep_wreck(self, name: str, content: bytes) -> Path:
        """Keep ``content`` in the quarantine for support."""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
        self.quarantine_path.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
        target = self.quarantine_path / f"{stamp}-{name}"
        target.write_bytes(content)
        self._trim_quarantine()
        return target

    def _trim_quarantine(self) -> None:
        """Drop the oldest files over the bounds; the newest one stays, whatever its size."""
        newest_first = sorted(self.quarantine_path.iterdir(), reverse=True)
        total = 0
        for number, file in enumerate(newest_first):
            total += file.stat().st_size
            if number and (number >= QUARANTINE_MAX_FILES or total > QUARANTINE_MAX_BYTES):
                file.unlink(missing_ok=True)

    def free_bytes(self) -> int:
        """Return how much room there is for an unprivileged user on the state's disk."""
        return shutil.disk_usage(self.path).free


def read_pid(state_dir: Path) -> int | None:
    """Return the process id in the lock file, whether or not that process lives."""
    try:
        return int((state_dir / LOCK_NAME).read_text())
    except (OSError, ValueError):
        return None


def _named(pid: int | None) -> str:
    return f" (process {pid})" if pid else ""


def _pid_when_denied(state_dir: Path) -> int | None:
    """Without the right to try the lock, believe the file if such a process exists."""
    pid = read_pid(state_dir)
    if pid is None or sys.platform == "win32":
        return pid
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return pid
    return pid


def _try_lock_for_a_moment(file: BinaryIO) -> bool:
    """Try again for a moment: `holder`, asked by a `status`, takes the lock to see if it can."""
    for _ in range(LOCK_TRIES - 1):
        if _try_lock(file):
            return True
        time.sleep(LOCK_PAUSE_S)
    return _try_lock(file)


def _try_lock(file: BinaryIO) -> bool:
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415

        # A lock far behind the end leaves the process id readable for others.
        file.seek(1 << 20)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            file.seek(0)
        return True
    import fcntl  # noqa: PLC0415

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
