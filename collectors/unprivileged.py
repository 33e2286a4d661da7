"""Changes a collector's process from root to an ordinary user, permanently (setresuid(2)).

The user is ``venue-agent``, or ``nobody`` if there is no such user. The daemon runs as
``venue-agent``, so a report that root collects has the same facts as a report of the daemon.
Without root's user id, a defect in a parser can neither change root's files nor connect to sockets
that only root may use.

This is for Linux only. On macOS, the collector stays root, because only processes of root may use
the local network.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SERVICE_USER: Final = "venue-agent"
NOBODY: Final = "nobody"
_UID_MAP: Final = Path("/proc/self/uid_map")


@dataclass(frozen=True, slots=True)
class Account:
    """An ordinary user. ``groups`` are all groups of the user."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]


def leave_root(directories: Iterable[str]) -> None:
    """If root runs this process, change permanently to an ordinary user.

    The user must be able to read the program's modules in ``directories``, because some are loaded
    later. A directory that only root can reach, such as one below /root, is opened first, and its
    modules are then loaded from the open directory. In a user namespace that does not map the user,
    this function does nothing: root of such a namespace is only an ordinary user of the machine.

    Call it while the process has one thread. Raises OSError with a readable reason.
    """
    if sys.platform != "linux" or os.geteuid() != 0:
        return
    account = ordinary_account()
    if not is_mapped(account.uid, _UID_MAP.read_text("ascii")):
        return
    with _acting_as(account):
        inaccessible = [
            path
            for path in directories
            if not os.access(path, os.R_OK | os.X_OK, effective_ids=True)
        ]
    opened = _open(inaccessible)
    load_modules_from(opened)
    files = [path for path in _module_files(opened) if Path(path).is_file()]
    with _acting_as(account):
        unreadable = [path for path in files if not os.access(path, os.R_OK, effective_ids=True)]
    if unreadable:
        text = f"the user {account.name} cannot read the program's file {unreadable[0]}"
        raise PermissionError(errno.EACCES, text)
    os.setgroups(account.groups)
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)


def ordinary_account() -> Account:
    """Return the user ``venue-agent`` or else ``nobody``. Raises OSError if neither exists."""
    import pwd  # not on Windows

    for name in (SERVICE_USER, NOBODY):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            groups = tuple(os.getgrouplist(name, entry.pw_gid))
            if 0 not in {entry.pw_uid, *groups}:
                return Account(name, entry.pw_uid, entry.pw_gid, groups)
    raise OSError(errno.ENOENT, f"there is no user {SERVICE_USER} and no user {NOBODY}")


def is_mapped(uid: int, uid_map: str) -> bool:
    """Return whether a user namespace has the user ``uid`` (user_namespaces(7), uid_map)."""
    rows = (map(int, line.split()) for line in uid_map.splitlines())
    return any(first <= uid < first + count for first, _, count in rows)


def load_modules_from(opened: Mapping[str, int]) -> None:
    """Replace each opened directory in the module search paths by the path of its descriptor."""
    packages = (getattr(module, "__path__", None) for module in tuple(sys.modules.values()))
    for search in (sys.path, *packages):
        if isinstance(search, list):
            search[:] = [_path_through(opened, path) for path in search]


def _open(directories: Iterable[str]) -> dict[str, int]:
    """Open the directories that exist. The descriptors stay open until the process ends."""
    opened = {}
    for path in directories:
        with contextlib.suppress(OSError):
            opened[path] = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    return opened


def _path_through(opened: Mapping[str, int], path: str) -> str:
    for directory, descriptor in opened.items():
        if path == directory or path.startswith(f"{directory}/"):
            return f"/proc/self/fd/{descriptor}{path[len(directory) :]}"
    return path


def _module_files(opened: Mapping[str, int]) -> Iterator[str]:
    """Yield the files of the loaded modules, and the program's file if it is packaged."""
    if getattr(sys, "frozen", False):
        yield sys.executable
    for module in tuple(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            yield _path_through(opened, file)


@contextlib.contextmanager
def _acting_as(account: Account) -> Iterator[None]:
    """Act as ``account`` until the context ends. Raises OSError if the system refuses it."""
    groups, gid = os.getgroups(), os.getegid()
    try:
        os.setgroups(account.groups)
        os.setegid(account.gid)
        os.seteuid(account.uid)
    except OSError as error:
        text = f"it cannot change to the user {account.name}: {error.strerror}"
        raise OSError(error.errno, text) from None
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(gid)
        os.setgroups(groups)
