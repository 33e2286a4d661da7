"""Claims the directory with all files of a demo. Only one demo can use it at a time."""

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controlplane.client.errors import CommandError

LOCK: Final = "demo.lock"
WAIT_FOR_LOCK_S: Final = 5.0
"""How long to wait for the processes of a killed demo. They end by themselves, usually within this
time, and hold the lock of the demo's directory until then.
"""

_POLL_S: Final = 0.1


@contextlib.contextmanager
def claim_directory(directory: Path) -> Iterator[int]:
    """Create and lock ``directory``, and delete the files that an earlier demo left there.

    Yields:
        The descriptor of the lock file. The directory stays locked until every process that
        inherited the descriptor has ended.

    Raises:
        CommandError: Another demo uses the directory, the directory contains files of a different
            program, or it cannot be created.
    """
    try:
        directory.mkdir(parents=True, mode=0o700, exist_ok=True)
        lock = directory / LOCK
        if not lock.exists() and any(directory.iterdir()):
            raise CommandError(
                f"{directory} has files that do not belong to a demo. A demo would delete them",
                "Use --dir with a new or an empty directory.",
            )
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError as error:
        raise CommandError(f"cannot create {directory}: {error.strerror}") from error
    try:
        _wait_for_lock(descriptor, directory)
        for path in directory.iterdir():
            # Keep the lock file: if this loop is interrupted, the next demo recognises by this
            # file that the directory belongs to a demo.
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != LOCK:
                path.unlink()
        yield descriptor
    finally:
        os.close(descriptor)


def _wait_for_lock(descriptor: int, directory: Path) -> None:
    deadline = time.monotonic() + WAIT_FOR_LOCK_S
    while not _try_lock(descriptor):
        if time.monotonic() > deadline:
            raise CommandError(
                f"another demo uses {directory}",
                "End it with Ctrl-C, or use --dir with another directory.",
            )
        time.sleep(_POLL_S)


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
