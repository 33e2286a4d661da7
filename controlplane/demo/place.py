"""The directory in which a demo keeps everything, and that one demo alone uses at a time."""

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
ENDS_WITHIN_S: Final = 5.0
"""What a demo that was killed has started ends by itself, and holds the lock until then."""

_PAUSE_S: Final = 0.1


@contextlib.contextmanager
def claimed(home: Path) -> Iterator[int]:
    """Make ``home`` or empty what a demo left there; yield the descriptor that holds it.

    It is held until every process that has it has ended. Raises CommandError where another demo
    uses the directory or somebody else's files are in it.
    """
    try:
        home.mkdir(parents=True, mode=0o700, exist_ok=True)
        lock = home / LOCK
        if not lock.exists() and any(home.iterdir()):
            raise CommandError(
                f"{home} holds something else than a demo, which would be removed",
                "--dir names a new or an empty directory.",
            )
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError as error:
        raise CommandError(f"cannot make {home}: {error.strerror}") from error
    try:
        if not _lock(descriptor):
            raise CommandError(
                f"another demo uses {home}",
                "End it where it was started (Ctrl-C), or name another directory with --dir.",
            )
        for path in home.iterdir():
            if path.name != LOCK:  # so that one killed while it empties is still known for a demo's
                _remove(path)
        yield descriptor
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _lock(descriptor: int) -> bool:
    deadline = time.monotonic() + ENDS_WITHIN_S
    while not _try_lock(descriptor):
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_S)
    return True


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
