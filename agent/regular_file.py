"""Reads a file whose name somebody gave: a regular one, a bounded part of it, without waiting.

Opening a FIFO waits for its other end, and opening a device may act on it: so neither is opened.
"""

import errno
import os
import stat
from pathlib import Path
from typing import Final

WITHOUT_WAITING: Final[int] = (
    getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)
"""Flags of open(2) that every file of a foreign name is opened with."""

_KINDS: Final = {
    stat.S_IFDIR: "a directory",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def kind_of(mode: int) -> str:
    """Name in words what has the file mode ``mode``."""
    return _KINDS.get(stat.S_IFMT(mode), "a regular file")


def read_regular(path: Path, max_bytes: int) -> bytes:
    """Return the first ``max_bytes`` of a regular file; links to one are followed.

    Raises OSError, whose ``strerror`` says what stands there instead.
    """
    _require_regular(path, path.stat())
    with os.fdopen(os.open(path, os.O_RDONLY | WITHOUT_WAITING), "rb") as file:
        _require_regular(path, os.fstat(file.fileno()))
        return file.read(max_bytes)


def _require_regular(path: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, f"it is {kind_of(status.st_mode)}, not a file", str(path))
