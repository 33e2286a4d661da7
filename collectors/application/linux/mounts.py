"""The file systems with this machine's data, from /proc/self/mountinfo (proc(5))."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Final

from collectors.application.readers.disk_space import Mount
from collectors.shared.sysfs import read_bytes, read_number
from collectors.shared.text import decode

_OCTAL = re.compile(r"\\([0-7]{3})")
_NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "afs", "ncpfs", "davfs"}
)
_IMAGES: Final = frozenset({"squashfs", "iso9660", "erofs", "cramfs", "udf"})
_POOLED: Final = frozenset({"zfs", "btrfs", "bcachefs", "overlay", "virtiofs"})
"""Types of file systems that hold data although their mounts may name no device below /dev."""
_HIDDEN_FUSE: Final = frozenset(
    {"fuse.portal", "fuse.gvfsd-fuse", "fuse.lxcfs", "fusectl"}
    # the images of snaps in a container
    | {"fuse.snapfuse", "fuse.squashfuse", "fuse.squashfuse_ll"}
)
_UPPER = re.compile(r"(?:^|,)upperdir=([^,]+)")
_USER_ID = re.compile(r"(?:^|,)user_id=(\d+)")
_APP_IMAGE: Final = "/.mount_"
"""The AppImage runtime mounts the image of a program at a directory whose name begins with this."""
_BY_NUMBER: Final = "/sys/dev/block/"
"""Contains links to the directories of devices. The name of a link is the device number."""
_MOUNTINFO_MAX_BYTES: Final = 1024 * 1024


def read_mounts(root: Path) -> tuple[Mount, ...]:
    entries = data_mounts(
        parse_mountinfo(decode(read_bytes(root / "proc/self/mountinfo", _MOUNTINFO_MAX_BYTES)))
    )
    return tuple(replace(mount, errors=error_count(root, mount.device)) for mount in entries)


def error_count(root: Path, device: str) -> int | None:
    """Return the number of errors of an ext4 file system (sysfs-fs-ext4 of the kernel).

    The finding about read-only disks ignores a disk with a count of 0, because such a disk was
    mounted read-only on purpose. A device that itself refuses writes, such as a worn memory card,
    must not be ignored. Therefore its count is None.
    """
    # /dev/mapper/NAME, which LVM uses, is a link. Sysfs uses the name of its target.
    name = (root / device.lstrip("/")).resolve().name
    if not device.startswith(("/dev/", _BY_NUMBER)) or read_number(
        root / "sys/class/block" / name / "ro"
    ):
        return None
    return read_number(root / "sys/fs/ext4" / name / "errors_count")


def parse_mountinfo(text: str) -> tuple[tuple[str, str, Mount], ...]:
    """Return the device number, the kernel's name of the device, and the mount of each line.

    Malformed lines, and file systems that a program of one user provides, are skipped.
    """
    mounts = []
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        mount_columns, device_columns = before.split(" "), after.split(" ")
        if not separator or len(mount_columns) < 6 or len(device_columns) < 3:  # proc(5)
            continue
        mount = Mount(
            path=_unescaped(mount_columns[4]),
            file_system=device_columns[0],
            # These are the options of the file system. The options of the mount, mount_columns[5],
            # are not used: the agent's systemd sandbox mounts every disk read-only for this
            # process.
            read_only="ro" in device_columns[2].split(","),
            remote=device_columns[0] in _NETWORK or device_columns[0].split(".")[0] == "fuse",
            upper=_unescaped(upper[1]) if (upper := _UPPER.search(device_columns[2])) else "",
            device=_device(_unescaped(device_columns[1]), mount_columns[2]),
        )
        if not _belongs_to_user(mount, device_columns[2]):
            mounts.append((mount_columns[2], _unescaped(device_columns[1]), mount))
    return tuple(mounts)


def _device(name: str, number: str) -> str:
    """Return a path of the device.

    Without an initramfs, the kernel names the device of the root file system "/dev/root", but this
    path does not exist.
    """
    return f"{_BY_NUMBER}{number}" if name == "/dev/root" else name


def data_mounts(entries: Iterable[tuple[str, str, Mount]]) -> tuple[Mount, ...]:
    """Return the mounts that hold data. Each file system is listed once, at its shortest path."""
    mounts: dict[str, Mount] = {}
    all_entries = tuple(entries)
    holds_data = {mount.path: _holds_data(device, mount) for _, device, mount in all_entries}
    for device_number, _, mount in all_entries:
        if not holds_data[mount.path] or _is_on_other_mount(mount, holds_data):
            continue
        other_mount = mounts.get(device_number)
        if other_mount is None or len(mount.path) < len(other_mount.path):
            mounts[device_number] = mount
    return tuple(sorted(mounts.values(), key=lambda mount: mount.path))


def _holds_data(device: str, mount: Mount) -> bool:
    kind = mount.file_system
    if kind in _IMAGES or kind in _HIDDEN_FUSE:
        return False
    return device.startswith("/dev/") or mount.remote or kind in _POOLED


def _is_on_other_mount(mount: Mount, holds_data: Mapping[str, bool]) -> bool:
    """Return whether an overlay, such as that of a container, stores its data on another mount.

    ``holds_data`` maps the path of each mount to whether the mount holds data. A mount that holds
    no data, such as a tmpfs, does not count.
    """
    if not mount.upper or mount.path == "/":
        return False
    parents = map(str, PurePosixPath(mount.upper).parents)
    other_path = next((path for path in parents if path in holds_data), None)
    return other_path is None or holds_data[other_path]


def _belongs_to_user(mount: Mount, options: str) -> bool:
    """Return whether a program of one user provides the file system (mount.fuse3(8)).

    Other users cannot read it. If it is full or read-only, that is not a fault of the machine.
    """
    is_fuse = mount.file_system.partition(".")[0] == "fuse"
    user = _USER_ID.search(options) if is_fuse else None
    return (user is not None and user[1] != "0") or _APP_IMAGE in mount.path


def _unescaped(text: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)
