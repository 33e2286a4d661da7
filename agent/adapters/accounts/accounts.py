"""Users and groups of this machine, from its account databases."""

import sys
from pathlib import Path
from typing import Final

_WHOLE_RANGE: Final = ["0", "0", "4294967295"]
"""The fields of /proc/self/uid_map outside of user namespaces: each user id is mapped to itself."""


def user_name(uid: int) -> str:
    """Return the name of a user, or the user id as text if the user has no name."""
    if sys.platform == "win32":
        return str(uid)
    import pwd  # not on Windows, and only needed for messages

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def is_private_group(gid: int, uid: int) -> bool:
    """Return whether a group is the private group of the user ``uid``.

    A private group has the name of its user, is the primary group of this user only, and lists no
    other members. Root's group is an exception: it may be the primary group of other
    users as well. On many systems, useradd(8) creates a private group for each user, and the umask
    is 002. The directories of a user are then writable for the group, but no other user is in the
    group.
    """
    if sys.platform == "win32":
        return False
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(uid), grp.getgrgid(gid)
    except KeyError:
        return False
    is_own_group = user.pw_gid == gid and group.gr_name == user.pw_name
    if not is_own_group or set(group.gr_mem) - {user.pw_name}:
        return False
    # On some systems, root's group is also the primary group of accounts without a shell.
    return gid == 0 or not any(
        other.pw_gid == gid and other.pw_uid != uid for other in pwd.getpwall()
    )


def ids_of_unmapped_users(proc: Path = Path("/proc")) -> frozenset[int]:
    """Return a set with the user id that stands for all users outside of this user namespace.

    The set is empty outside of user namespaces. No process in the namespace can act as the user
    with this id (user_namespaces(7), "Unmapped user and group IDs").
    """
    try:
        if (proc / "self/uid_map").read_text().split() == _WHOLE_RANGE:
            return frozenset()
        return frozenset({int((proc / "sys/kernel/overflowuid").read_text())})
    except (OSError, ValueError):
        return frozenset()
