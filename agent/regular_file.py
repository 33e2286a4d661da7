"""Reads a bounded part of a regular file without blocking, for names that users provide.

FIFOs and devices are not opened: opening a FIFO blocks, and opening a device may change its state.
"""

import errno
import os
import stat
from pathlib import Path
from typing import Final

WITHOUT_WAITING: Final[int] = (
    getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)
"""Flags of open(2) for every file."""

_KINDS: Final = {
    stat.S_IFDIR: "a directory",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def kind_of(mode: int) -> str:
    """Return the kind of file that a file mode describes."""
    return _KINDS.get(stat.S_IFMT(mode), "a regular file")


def read_regular(path: Path, max_bytes: int) -> bytes:
    """Return the first ``max_bytes`` of a regular file; links to one are followed.

    Raises OSError, whose ``strerror`` names the kind of file if it is not a regular one.
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
