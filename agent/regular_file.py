"""Reads the start of a regular file without blocking. The file name can come from a user.

FIFOs and devices are refused: opening a FIFO blocks, and opening a device can change its state.
"""

import errno
import os
import stat
from pathlib import Path
from typing import Final

WITHOUT_WAITING: Final[int] = (
    getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)
"""Flags of open(2): do not block, do not pass the descriptor to child processes, and do not convert
line ends."""

_KINDS: Final = {
    stat.S_IFDIR: "a directory",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def kind_of(mode: int) -> str:
    """Return the kind of a file with this ``st_mode``, such as ``a directory``."""
    return _KINDS.get(stat.S_IFMT(mode), "a regular file")


def read_regular(path: Path, max_bytes: int) -> bytes:
    """Return the first ``max_bytes`` of a regular file. Symbolic links are followed.

    Raises OSError. If the file is not a regular file, ``strerror`` describes its kind.
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
