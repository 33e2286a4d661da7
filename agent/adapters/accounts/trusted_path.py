"""Who else could change what a path leads to: every directory and link on the way is looked at.

As sshd's StrictModes and sudo do it: whoever may write a directory may rename what is in it and
put something else in its place, unless its sticky bit is set (unlink(2), EPERM); then only the
owner of the thing itself may, besides the directory's.
"""

import os
import stat
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.adapters.accounts.accounts import is_private_group, owners_outside, user_name

ROOT: Final = 0
_WRITABLE: Final = stat.S_IWGRP | stat.S_IWOTH
_LINKS_MAX: Final = 40
"""As many as the kernel follows (path_resolution(7))."""


@dataclass(frozen=True, slots=True)
class Weakness:
    """``detail`` says who could change what, ``fix`` what to do about it."""

    detail: str
    fix: str


def weakness_of(path: Path, owners: Collection[int]) -> Weakness | None:
    """Return the first thing on the way to ``path``, or itself, that others could change.

    ``owners`` are trusted. ``path`` itself may be writable for nobody but its owner; a directory
    on the way also for a group that has no other member than its trusted owner. Raises OSError
    where the way ends or is closed.
    """
    trusted = {*owners, *owners_outside()}
    last = None
    for step, status in _way(path):
        if last is not None and (found := _judge(*last, trusted, is_last=False)):
            return found
        last = step, status
    return _judge(*last, trusted, is_last=True) if last else None


def weakness_below(directory: Path, owners: Collection[int]) -> Weakness | None:
    """Return the first thing in ``directory``, at any depth, that others could change."""
    trusted = {*owners, *owners_outside()}
    for parent, folders, files in os.walk(directory):
        for name in (*folders, *files):
            path = Path(parent, name)
            if found := _judge(path, path.lstat(), trusted, is_last=True):
                return found
    return None


def _way(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield what the kernel passes on its way, links included (path_resolution(7))."""
    absolute = path.absolute()
    here, links = Path(absolute.anchor), 0
    yield here, here.lstat()
    rest = deque(absolute.parts[1:])
    while rest:
        name = rest.popleft()
        step = here.parent if name == os.pardir else here / name
        status = step.lstat()
        yield step, status
        if not stat.S_ISLNK(status.st_mode):
            here = step
            continue
        links += 1
        if links > _LINKS_MAX:
            raise OSError(f"{path} leads through too many links")
        target = step.readlink()
        here = Path(target.anchor) if target.is_absolute() else here
        rest.extendleft(reversed(target.parts[1 if target.is_absolute() else 0 :]))


def _judge(
    path: Path, status: os.stat_result, trusted: Collection[int], *, is_last: bool
) -> Weakness | None:
    if status.st_uid not in trusted:
        owner = user_name(status.st_uid)
        return Weakness(f"{path} belongs to {owner}", f"`chown root {path}`, or use another place")
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode) or not mode & _WRITABLE:
        return None
    if not is_last and _is_harmless(status):
        return None
    who = "everybody" if mode & stat.S_IWOTH else "its group"
    return Weakness(f"{who} may write {path} (mode {mode:04o})", f"`chmod go-w {path}`")


def _is_harmless(status: os.stat_result) -> bool:
    """Tell whether a writable directory on the way leaves what is in it to its owner."""
    if status.st_mode & stat.S_ISVTX:
        return True
    is_for_others = status.st_mode & stat.S_IWOTH
    return not is_for_others and is_private_group(status.st_gid, status.st_uid)
