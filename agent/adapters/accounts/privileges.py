"""Gives up root's rights for those of the user whose state directory is worked on.

The user whom the service runs as owns the directory, and may have put anything into it. So a verb
that root runs there goes on as this user, for good: a link leads nowhere that this user may not go
anyway, and what is left behind the service can read. What only root can read, the configuration
and the API key, is read before.
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
from agent.adapters.storage.atomic_file import write_atomically
from agent.config.model import default_config_path
from agent.config.rights import STEPPED_DOWN
from agent.errors import StateError
from agent.regular_file import kind_of

PRIVATE: Final = 0o600
_LENGTH_BYTES: Final = 8
_REPLY_MAX: Final = 1000


def step_down(directory: Path) -> bool:
    """As root, become the owner of ``directory``; tell whether this was done.

    Nothing is done where it is root's own or does not exist, or where this process is not root.
    Afterwards the environment is as a service manager gives it: what is asked of it later has the
    answers of before. Raises StateError.
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
            f"{directory} belongs to {user_name(status.st_uid)}, whom this process cannot become"
            f" ({error.strerror}): run it as this user"
        ) from None
    os.environ.update(
        HOME=home,
        USER=user_name(status.st_uid),
        LOGNAME=user_name(status.st_uid),
        STATE_DIRECTORY=str(directory),
        VENUE_AGENT_CONFIG=str(config),
        **{STEPPED_DOWN: "1"},
    )
    _require_a_program(directory, status.st_uid)
    return True


@contextlib.contextmanager
def writer_of(path: Path, mode: int = PRIVATE) -> Iterator[Callable[[bytes], None]]:
    """Yield what writes one file with the rights that this process has now; it raises OSError.

    For root that is a process of its own, which does nothing else: it is there when this one has
    stepped down, and ends with it. Enter it before a thread is started.
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
        _write_when_told(path, mode, from_parent, to_parent)
    os.close(from_parent)
    os.close(to_parent)
    to, answers = os.fdopen(to_child, "wb"), os.fdopen(from_child, "rb")

    def write(content: bytes) -> None:
        to.write(len(content).to_bytes(_LENGTH_BYTES, "big") + content)
        to.close()
        reply = answers.read(_REPLY_MAX).decode("utf-8", "replace")
        if reply != "done":
            raise OSError(errno.EIO, reply or "the process that writes it ended", str(path))

    try:
        yield write
    finally:
        with contextlib.suppress(OSError):  # the process is gone: `write` has said so
            to.close()
        answers.close()
        os.waitpid(child, 0)


def replace_file(path: Path, content: bytes, mode: int = PRIVATE) -> None:
    """Write atomically, in the place of nothing or of a regular file. Raises OSError."""
    try:
        present = path.lstat().st_mode
    except FileNotFoundError:
        pass
    else:
        if not stat.S_ISREG(present):
            raise OSError(errno.EINVAL, f"it is {kind_of(present)}, not a file", str(path))
    write_atomically(path, content, mode)


def _write_when_told(path: Path, mode: int, source: int, answers: int) -> None:
    """Be the process that writes: all that is announced, or nothing. Never returns."""
    try:
        # Ctrl-C is for the one who asks: without it nothing comes, and this ends.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with os.fdopen(source, "rb") as file:
            announced, content = file.read(_LENGTH_BYTES), file.read()
        if len(announced) == _LENGTH_BYTES and int.from_bytes(announced, "big") == len(content):
            try:
                replace_file(path, content, mode)
                reply = "done"
            except OSError as error:
                reply = error.strerror or str(error)
            os.write(answers, reply.encode()[:_REPLY_MAX])
    finally:
        os._exit(0)


def _become(uid: int, gid: int) -> str:
    """Take on a user's identity, groups included, for ever; return its home."""
    if sys.platform == "win32":
        return ""  # nobody asks: `step_down` does nothing there
    import pwd

    try:
        account = pwd.getpwuid(uid)
    except KeyError:
        name, home = None, "/"
    else:
        name, gid, home = account.pw_name, account.pw_gid, account.pw_dir
    # The groups while it is still root, the user last: setuid(2) gives up the right to both.
    os.setgroups([gid] if name is None else os.getgrouplist(name, gid))
    os.setgid(gid)
    os.setuid(uid)
    return home


def _require_a_program(directory: Path, uid: int) -> None:
    """Raise StateError where the rest of this program is closed to the user."""
    is_packaged = getattr(sys, "frozen", False)
    parts = (sys.executable,) if is_packaged else (os.__file__, __file__)
    for part in map(Path, parts):
        try:
            part.stat()
        except PermissionError:
            raise StateError(
                f"{directory} belongs to {user_name(uid)}, who cannot read this program in"
                f" {part.parent}: install it where this user may read it"
            ) from None
