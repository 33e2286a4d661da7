"""Opens files safely in a directory that can belong to another user.

The owner of the directory can replace a file by a symbolic link, a FIFO or a hard link, and wait
until root opens it. Therefore a file is opened only if it is a regular file, has no further hard
links, and belongs to the owner of the directory. A file of root is refused too: the agent, which
runs as the owner, could not read it.
"""

import os
import stat
import sys
from pathlib import Path
from typing import Final

from agent.adapters.accounts.accounts import user_name
from agent.errors import StateError
from agent.regular_file import WITHOUT_WAITING, kind_of

PRIVATE: Final = 0o600
_NO_LINK: Final[int] = getattr(os, "O_NOFOLLOW", 0)
_TRIES: Final = 5
"""Number of attempts to open a file that another process creates at the same time."""


class UnsafeFile(StateError):
    """A path is not a safe file of the agent. The message contains the fix."""


def open_safely(path: Path, flags: int) -> int:
    """Open a file like open(2), and return the descriptor. Raises UnsafeFile and OSError.

    The file is checked before it is opened, because opening a device can have an effect. The open
    file is checked again by its descriptor, because the path might have been replaced since.
    With O_CREAT, a path that does not exist is created with O_EXCL, which follows no link.
    """
    for _ in range(_TRIES - 1):
        try:
            return _open(path, flags)
        except FileExistsError:
            continue  # another process has just created it
    return _open(path, flags)


def read_start_safely(path: Path, max_bytes: int) -> bytes:
    """Return the first ``max_bytes`` of the file. Raises UnsafeFile and OSError."""
    with os.fdopen(open_safely(path, os.O_RDONLY), "rb") as file:
        return file.read(max_bytes)


def read_safely(path: Path, max_bytes: int) -> bytes:
    """Return the content of the file.

    Raises OSError, and UnsafeFile if the file is unsafe or larger than ``max_bytes``.
    """
    content = read_start_safely(path, max_bytes + 1)
    if len(content) > max_bytes:
        raise UnsafeFile(f"{path} is larger than {max_bytes} bytes: move it away")
    return content


def require_own(path: Path) -> None:
    """Raise UnsafeFile if ``path`` exists and is unsafe.

    Call this before a library opens the file by its name.
    """
    if (status_and_owner := _status(path)) is not None:
        _require_own_file(path, *status_and_owner)


def require_own_directory(path: Path) -> None:
    """Raise UnsafeFile unless ``path`` is a directory with the same owner as its parent.

    A path that does not exist is accepted.
    """
    if (status_and_owner := _status(path)) is None:
        return
    status, owner = status_and_owner
    if not stat.S_ISDIR(status.st_mode) or _is_reparse_point(status):
        raise UnsafeFile(f"{path} is {_kind(status)}, not a directory of the agent: remove it")
    _require_owner(path, status, owner)


def _status(path: Path) -> tuple[os.stat_result, int] | None:
    """Return the status of a path and the owner of its directory; None if it does not exist."""
    try:
        return path.lstat(), path.parent.stat().st_uid
    except FileNotFoundError:
        return None


def _open(path: Path, flags: int) -> int:
    if sys.platform == "win32":
        return _open_under_windows(path, flags)
    directory = os.open(path.parent, getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY)
    try:
        owner = os.fstat(directory).st_uid
        try:
            status = os.stat(path.name, dir_fd=directory, follow_symlinks=False)
            _require_own_file(path, status, owner)
            flags &= ~os.O_CREAT
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
            flags |= os.O_EXCL
        handle = os.open(path.name, flags | WITHOUT_WAITING | _NO_LINK, PRIVATE, dir_fd=directory)
    finally:
        os.close(directory)
    try:
        _require_own_file(path, os.fstat(handle), owner)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _open_under_windows(path: Path, flags: int) -> int:
    """Open a file on Windows, which has no flag that refuses links.

    The file is therefore checked only before it is opened. This is sufficient, because other users
    have no access to the directory (adapters.service_manager.windows).
    """
    require_own(path)
    return os.open(path, flags | WITHOUT_WAITING, PRIVATE)


def _require_own_file(path: Path, status: os.stat_result, owner: int) -> None:
    if not stat.S_ISREG(status.st_mode) or _is_reparse_point(status):
        raise UnsafeFile(f"{path} is {_kind(status)}, not a file of the agent: remove it")
    _require_owner(path, status, owner)
    if status.st_nlink > 1:
        raise UnsafeFile(f"{path} is a hard link, and the file has another name: remove {path}")


def _require_owner(path: Path, status: os.stat_result, owner: int) -> None:
    if status.st_uid != owner:
        expected = user_name(owner)
        raise UnsafeFile(
            f"{path} belongs to {user_name(status.st_uid)}, but its directory belongs to"
            f" {expected}: remove it, or `chown {expected} {path}`"
        )


def _kind(status: os.stat_result) -> str:
    return "a link" if _is_reparse_point(status) else kind_of(status.st_mode)


def _is_reparse_point(status: os.stat_result) -> bool:
    """Return whether a file is a junction or another kind of Windows link."""
    attributes = getattr(status, "st_file_attributes", 0)
    return bool(attributes & stat.FILE_ATTRIBUTE_REPARSE_POINT)
