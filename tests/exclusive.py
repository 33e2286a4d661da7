"""Keeps other tests away while one runs that measures time or listens to a network.

Workers of one run (pytest-xdist) share two locked files, as readers and writers do: who wants to
be alone closes the gate, waits until the room is empty, and nobody comes in before it has left.
"""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path


class SharedLock:
    """``place`` is a directory that all workers of a run share. See flock(2)."""

    def __init__(self, place: Path) -> None:
        self._gate = (place / "gate").open("w")
        self._room = (place / "room").open("w")

    @contextlib.contextmanager
    def entered(self, *, alone: bool) -> Iterator[None]:
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._room, fcntl.LOCK_UN)

    def close(self) -> None:
        self._gate.close()
        self._room.close()
