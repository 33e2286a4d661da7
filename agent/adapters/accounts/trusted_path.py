"""Finds users who could replace the target of a path. Checks each directory and link on the way.

The rules are those of sshd's StrictModes and of sudo. A user who can write to a directory can
rename and replace its entries. If the sticky bit is set, only the owner of an entry and the owner
of the directory can replace the entry (unlink(2), EPERM).
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.adapters.accounts.accounts import ids_of_unmapped_users, is_private_group, user_name

ROOT: Final = 0
_WRITABLE: Final = stat.S_IWGRP | stat.S_IWOTH
_LINKS_MAX: Final = 40
"""Maximum number of links in a path that the kernel follows (path_resolution(7))."""


@dataclass(frozen=True, slots=True)
class Weakness:
    """A path that users who are not trusted could change.

    ``detail`` names the path and the users. ``fix`` describes how to protect the path.
    """

    detail: str
    fix: str


def weakness_of(path: Path, owners: Collection[int]) -> Weakness | None:
    """Return the first part of ``path`` that users other than ``owners`` could change.

    ``path`` must be writable for its owner only. A parent directory that all users can write to is
    accepted if it has the sticky bit. A parent directory that a group can write to is accepted if
    the group is the private group of the owner. Raises OSError if the path does not exist or cannot
    be read.
    """
    trusted_owners = {*owners, *ids_of_unmapped_users()}
    # A step is checked when the next step is known, because stricter rules apply to the last step.
    previous = None
    for step, status in _steps_to(path):
        if previous is not None and (weakness := _check(*previous, trusted_owners, is_last=False)):
            return weakness
        previous = step, status
    return _check(*previous, trusted_owners, is_last=True) if previous else None


def weakness_below(directory: Path, owners: Collection[int]) -> Weakness | None:
    """Return the first entry below ``directory`` that users other than ``owners`` could change."""
    trusted_owners = {*owners, *ids_of_unmapped_users()}
    for parent, folders, files in os.walk(directory):
        for name in (*folders, *files):
            path = Path(parent, name)
            if weakness := _check(path, path.lstat(), trusted_owners, is_last=True):
                return weakness
    return None


def _steps_to(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield every directory and link on the way to the target of ``path`` (path_resolution(7))."""
    absolute = path.absolute()
    position, link_count = Path(absolute.anchor), 0
    yield position, position.lstat()
    remaining_parts = deque(absolute.parts[1:])
    while remaining_parts:
        name = remaining_parts.popleft()
        step = position.parent if name == os.pardir else position / name
        status = step.lstat()
        yield step, status
        if not stat.S_ISLNK(status.st_mode):
            position = step
            continue
        link_count += 1
        if link_count > _LINKS_MAX:
            raise OSError(errno.ELOOP, "contains too many links", str(path))
        target = step.readlink()
        parts = target.parts
        if target.is_absolute():
            position, parts = Path(target.anchor), parts[1:]
        remaining_parts.extendleft(reversed(parts))


def _check(
    path: Path, status: os.stat_result, trusted_owners: Collection[int], *, is_last: bool
) -> Weakness | None:
    """Return the weakness of one step of a path.

    ``is_last`` is True for the target, and False for a directory or link on the way to it.
    """
    if status.st_uid not in trusted_owners:
        owner = user_name(status.st_uid)
        return Weakness(f"{path} belongs to {owner}", f"`chown root {path}`, or use another path")
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode) or not mode & _WRITABLE:
        return None
    if not is_last and _is_harmless(status):
        return None
    who = "every user" if mode & stat.S_IWOTH else "its group"
    return Weakness(f"{path} is writable for {who} (mode {mode:04o})", f"`chmod go-w {path}`")


def _is_harmless(status: os.stat_result) -> bool:
    """Return whether a directory is safe although its group or all users can write to it."""
    if status.st_mode & stat.S_ISVTX:
        return True
    is_world_writable = status.st_mode & stat.S_IWOTH
    return not is_world_writable and is_private_group(status.st_gid, status.st_uid)
