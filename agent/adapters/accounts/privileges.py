"""Drops root's rights and continues as the owner of the state directory.

The daemon's user owns the directory, and can create links there to any file. Therefore a command
that root runs, and that uses the directory, changes permanently to this user. The command can then
follow a link only to a file that this user can access. The files that the command creates belong to
this user, so the daemon can read them. The configuration and the API key are read before the
change, because it is possible that only root can read them.
"""

import contextlib
import errno
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from agent.adapters.accounts.accounts import user_name
from agent.adapters.storage.atomic_file import PRIVATE, write_atomically
from agent.config.model import default_config_path
from agent.config.rights import STEPPED_DOWN
from agent.errors import StateError
from agent.regular_file import kind_of

_LENGTH_BYTES: Final = 8
"""Size of the field with the content's length, which is sent to the child before the content."""
_REPLY_MAX: Final = 1000
"""Maximum size of the child's reply in bytes: "done", or the reason of a failure."""


def step_down(directory: Path) -> bool:
    """If this process runs as root, change to the owner of ``directory``, and return True.

    Returns False if this process does not run as root, if the directory belongs to root, or if the
    directory does not exist. After the change, the environment is set as the service manager sets
    it, so that later code uses the same paths as the daemon. Raises StateError.
    """
    if sys.platform == "win32" or os.geteuid() != 0:
        return False
    try:
        status = directory.stat()
    except OSError:
        return False
    if status.st_uid == 0:
        return False
    config = default_config_path()
    try:
        home = _become(status.st_uid, status.st_gid)
    except OSError as error:
        raise StateError(
            f"{directory} belongs to {user_name(status.st_uid)}, and this process cannot change to"
            f" that user ({error.strerror}): run the command as that user"
        ) from None
    os.environ.update(
        HOME=home,
        USER=user_name(status.st_uid),
        LOGNAME=user_name(status.st_uid),
        STATE_DIRECTORY=str(directory),
        VENUE_AGENT_CONFIG=str(config),
        **{STEPPED_DOWN: "1"},
    )
    _require_readable_program(directory, status.st_uid)
    return True


@contextlib.contextmanager
def writer_of(path: Path, mode: int = PRIVATE) -> Iterator[Callable[[bytes], None]]:
    """Yield a function that writes one file with the rights that this process has now.

    The function keeps these rights after `step_down`: if this process runs as root, the function
    sends the content to a child process, which stays root. The child ends when this context ends.
    The function raises OSError. Enter this context before any thread is started.
    """
    if sys.platform == "win32" or os.geteuid() != 0:
        yield lambda content: replace_file(path, content, mode)
        return
    from_parent, to_child = os.pipe()
    from_child, to_parent = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(to_child)
        os.close(from_child)
        _run_writer(path, mode, from_parent, to_parent)
    os.close(from_parent)
    os.close(to_parent)
    content_pipe, reply_pipe = os.fdopen(to_child, "wb"), os.fdopen(from_child, "rb")

    def write(content: bytes) -> None:
        content_pipe.write(len(content).to_bytes(_LENGTH_BYTES, "big") + content)
        content_pipe.close()
        reply = reply_pipe.read(_REPLY_MAX).decode("utf-8", "replace")
        if reply != "done":
            raise OSError(errno.EIO, reply or "the process that writes it has ended", str(path))

    try:
        yield write
    finally:
        # If the child ended early, `write` has already raised an error. Closing the pipe can raise
        # another error.
        with contextlib.suppress(OSError):
            content_pipe.close()
        reply_pipe.close()
        os.waitpid(child, 0)


def replace_file(path: Path, content: bytes, mode: int = PRIVATE) -> None:
    """Write a file atomically. Raises OSError, also if the path is not a regular file."""
    try:
        file_mode = path.lstat().st_mode
    except FileNotFoundError:
        pass
    else:
        if not stat.S_ISREG(file_mode):
            raise OSError(errno.EINVAL, f"it is {kind_of(file_mode)}, not a file", str(path))
    write_atomically(path, content, mode)


def _run_writer(path: Path, mode: int, content_pipe: int, reply_pipe: int) -> None:
    """Run the child: read the content from its pipe, and write it if complete. Never returns."""
    try:
        # Ctrl-C ends the parent. The child then reads incomplete content, writes nothing and ends.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with os.fdopen(content_pipe, "rb") as file:
            length, content = file.read(_LENGTH_BYTES), file.read()
        if len(length) == _LENGTH_BYTES and int.from_bytes(length, "big") == len(content):
            try:
                replace_file(path, content, mode)
                reply = "done"
            except OSError as error:
                reply = error.strerror or str(error)
            os.write(reply_pipe, reply.encode()[:_REPLY_MAX])
    finally:
        os._exit(0)


def _become(uid: int, gid: int) -> str:
    """Change permanently to a user and its groups. Return the user's home directory."""
    if sys.platform == "win32":
        return ""  # never called: `step_down` does nothing on Windows
    import pwd

    try:
        account = pwd.getpwuid(uid)
    except KeyError:
        name, home = None, "/"
    else:
        name, gid, home = account.pw_name, account.pw_gid, account.pw_dir
    # The user is changed last, because a process of this user cannot change its groups.
    os.setgroups([gid] if name is None else os.getgrouplist(name, gid))
    os.setgid(gid)
    os.setuid(uid)
    return home


def _require_readable_program(directory: Path, uid: int) -> None:
    """Raise StateError if the user cannot read the program, which loads more modules later."""
    is_packaged = getattr(sys, "frozen", False)
    parts = (sys.executable,) if is_packaged else (os.__file__, __file__)
    for part in map(Path, parts):
        if not os.access(part, os.R_OK):
            raise StateError(
                f"{directory} belongs to {user_name(uid)}, who cannot read this program in"
                f" {part.parent}: install it where that user can read it"
            )
