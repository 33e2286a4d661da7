"""Measures how full each file system is. An unreachable network mount does not delay other mounts.

If the server of a mount is unreachable, statvfs(2) blocks in the kernel, and the process cannot be
ended. Therefore, on POSIX systems each mount is queried by a `df` process of its own, which is
abandoned if it does not reply in time.
"""

import ctypes
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import psutil

from collectors.application.deadline import Deadline
from collectors.application.source import Fields, Origin, Reading, Unreadable, left_out, source
from collectors.shared.run_command import release, start_command
from collectors.shared.text import clean_text

MOUNTS_MAX: Final = 32
MOUNT_TABLE: Final = Origin("mount table")
ORIGIN: Final = Origin("statvfs")
SPACE_S: Final = 1.5
"""Time limit of `df`. If a disk does not report its size within this time, its fields get the
status collection-failed, which creates a finding.
"""

_DENIED = re.compile(rb"Permission denied|Operation not permitted")
_HIDDEN: Final = b"No such file or directory"
_PORTABLE_LINE = re.compile(rb"\s(\d{1,16})\s+(\d{1,16})\s+(-?\d{1,16})\s+(?:\d+%|-)\s")
"""The columns size, used, available and percentage of `df -P`. For a file system of size 0, the
percentage is ``-``."""
_NAME_MAX: Final = 120
_OWNED_PATH = re.compile(r"^(/home|/Users|/media|/run/media|/run/user|/var/run/user)/[^/]+")
_POLL_S: Final = 0.02
_LABEL_MAX: Final = 260  # MAX_PATH
_RECOVERY = re.compile(
    r"recover|restore|winre|pqservice|system reserved"
    r"|wiederherst|herstel(?!l)|system-reserviert"
    r"|r[eé]cup[eé]r|r[eé]serv[eé] au syst|ripristin|reservado",
    re.IGNORECASE,
)
"""Labels of partitions that Windows or the maker of a PC reserves for repairs, in the languages in
which Windows writes them."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system. A ``remote`` one is provided by another machine or by a program.

    ``device`` is what is mounted, such as ``/dev/sda1`` or ``/sys/dev/block/8:1``; "" if not known.
    ``upper`` is the directory in which an overlay stores the data that was written to it.
    ``errors`` is the number of errors that the kernel found in the file system, or None if that is
    not known.
    """

    path: str
    file_system: str
    read_only: bool
    remote: bool = False
    upper: str = ""
    device: str = ""
    errors: int | None = None


@dataclass(frozen=True, slots=True)
class Space:
    size_bytes: int
    free_bytes: int
    """The space that is free for ordinary users."""


Answers = dict[str, Space | Unreadable | str]
"""Maps the path of each mount to its space, or to the reason why the space is unknown. If the
reason is a text, the snapshot's fields about the space, such as ``disk.*.freeBytes``, get the
status collection-failed. An `Unreadable` has both the reason and the status of these fields."""


@source("disk", ORIGIN, "disk.mounts")
def read_disk_space(
    deadline: Deadline,
    read_mounts: Callable[[], Sequence[Mount]],
    query: Callable[[Sequence[Mount], Deadline], Answers] | None = None,
) -> Reading:
    all_mounts = tuple(read_mounts())
    first_mounts = all_mounts[:MOUNTS_MAX]
    measure = query or (space_by_psutil if sys.platform == "win32" else space_by_df)
    answers = measure(first_mounts, deadline.sooner(SPACE_S))
    fields = [MOUNT_TABLE.available("disk.mounts", tuple(map(_name, first_mounts)))]
    for mount in first_mounts:
        fields += fields_of(mount, answers.get(mount.path, "the mount was not queried"))
    return Reading(tuple(fields), limitations=left_out(len(all_mounts), MOUNTS_MAX, "mounts"))


def fields_of(mount: Mount, answer: Space | Unreadable | str) -> Fields:
    """Yield the fields of a mount. ``answer`` is its space, or the reason why it is unknown."""
    prefix = f"disk.{_name(mount)}"
    yield MOUNT_TABLE.available(f"{prefix}.fileSystem", mount.file_system)
    yield MOUNT_TABLE.available(f"{prefix}.readOnly", mount.read_only)
    if mount.errors is not None:
        yield Origin("sysfs").available(f"{prefix}.errors", mount.errors)
    keys = (f"{prefix}.sizeBytes", f"{prefix}.freeBytes", f"{prefix}.usedFraction")
    if isinstance(answer, str):
        yield from ORIGIN.all_absent(keys, "collection-failed", answer)
    elif isinstance(answer, Unreadable):
        yield from ORIGIN.all_absent(keys, answer.status, answer.reason)
    else:
        used_share = 1 - answer.free_bytes / answer.size_bytes if answer.size_bytes else 0.0
        values = (answer.size_bytes, answer.free_bytes, round(min(1.0, max(0.0, used_share)), 4))
        yield from map(ORIGIN.available, keys, values)


def parse_df(data: bytes) -> Space | None:
    """Parse the last line of `df -P -k` (POSIX.1-2017, df), which counts blocks of 1024 bytes."""
    lines = data.splitlines()
    match = _PORTABLE_LINE.search(lines[-1]) if lines else None
    if match is None:
        return None
    size, _, free = (int(number) * 1024 for number in match.groups())
    return Space(size, max(0, free))


def space_by_df(mounts: Sequence[Mount], deadline: Deadline) -> Answers:
    """Query all mounts in parallel, each in its own process. Late processes are abandoned."""
    running = {
        mount.path: start_command(("df", "-P", "-k", "--", mount.path), environ={})
        for mount in mounts
    }
    while deadline.remaining_s() > 0 and any(p.poll() is None for p in running.values()):
        time.sleep(_POLL_S)
    return {path: _answer(process) for path, process in running.items()}


def space_by_psutil(mounts: Sequence[Mount], _: Deadline) -> Answers:
    answers: Answers = {}
    for mount in mounts:
        try:
            usage = psutil.disk_usage(mount.path)
        except OSError as error:
            answers[mount.path] = f"the disk does not answer: {error.strerror}"
        else:
            answers[mount.path] = Space(usage.total, usage.free)
    return answers


def psutil_mounts() -> tuple[Mount, ...]:
    """Return the mounts of macOS or Windows that hold the machine's data."""
    label = volume_label if sys.platform == "win32" else lambda _: ""
    return tuple(
        Mount(
            path=part.mountpoint,
            file_system=part.fstype,
            read_only="ro" in part.opts.split(","),
            remote="remote" in part.opts or part.fstype in {"smbfs", "nfs", "afpfs", "webdav"},
        )
        for part in psutil.disk_partitions(all=False)
        if holds_data(part.mountpoint, part.opts.split(","), label)
    )


def holds_data(path: str, options: Sequence[str], label: Callable[[str], str]) -> bool:
    """Return whether programs of the machine store data on a mount.

    Programs store no data on macOS's system volumes, CDs, removable drives (such as an installation
    stick) or recovery partitions. A recovery partition is always nearly full. If it were reported,
    there would be a finding about a full disk, although nothing is wrong.

    Args:
        options: options of the mount, as psutil names them.
        label: returns the label of the volume at a path, or "" if the volume has no label.
    """
    if path.startswith(("/System/Volumes/", "/private/var/vm")) or "cdrom" in options:
        return False
    return "removable" not in options and not _RECOVERY.search(label(path))


def volume_label(path: str) -> str:
    """Return the label of the Windows volume at ``path``, or "" if it has no label.

    For example, a maker's recovery partition at ``D:\\`` often has the label "RECOVERY".
    """
    if sys.platform == "win32":
        label = ctypes.create_unicode_buffer(_LABEL_MAX + 1)
        # The four None and the 0: the other properties of the volume are not requested.
        ctypes.windll.kernel32.GetVolumeInformationW(path, label, len(label), *(None,) * 4, 0)
        return label.value
    else:  # noqa: RET505 - type checkers understand a platform check only with this else
        return ""


def without_owner(path: str) -> str:
    """Replace the user's name in a path below a home or media directory by ``*``."""
    return _OWNED_PATH.sub(r"\1/*", path)


def _answer(process: "subprocess.Popen[bytes]") -> Space | Unreadable | str:
    assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018 - piped
    try:
        if process.poll() is None:
            process.kill()
            return "the mount does not answer"
        if space := parse_df(process.stdout.read(65536)):
            return space
        error = process.stderr.read(65536)
        if _DENIED.search(error):
            reason = "only other users may enter the directory of this mount"
            return Unreadable("permission-denied", reason)
        if _HIDDEN in error:
            return Unreadable("not-applicable", "another mount hides this one")
        return "the mount does not report its size"
    finally:
        release(process)


def _name(mount: Mount) -> str:
    return clean_text(without_owner(mount.path), _NAME_MAX)
