"""Rules for disks: free space, read-only disks, drives that fail or wear out."""

from collections.abc import Iterator
from typing import Final

from agent.presentation.findings.conditions import at_least
from agent.presentation.findings.rule import Detect, ProblemRule, Rule, Values, WarningRule
from agent.presentation.findings.snapshot_facts import SnapshotFacts
from agent.presentation.humanize import format_bytes, percent

_GIB: Final = 1024**3

DISK_FULL, DISK_FULL_FREE = 0.97, 2 * _GIB
DISK_FILLING, DISK_FILLING_FREE = 0.90, 10 * _GIB
"""A disk is full, or nearly full, if at least this share of it is used and less than this number of
bytes is free."""
WORN: Final = 0.9
"""A drive is worn if it has used at least this share of its lifetime."""
STALLED_BY_DISK: Final = 0.4
"""Minimum share of the last minute in which programs waited for a slow disk."""

_MADE_READ_ONLY: Final = frozenset({"apfs", "overlay", "composefs", "erofs", "squashfs"})
"""File systems that macOS and image-based systems mount read-only at ``/`` on purpose."""
_WRITTEN_TO: Final = ("/home", "/opt", "/srv", "/tmp", "/var")  # noqa: S108 - names to look for


def _disks(facts: SnapshotFacts, used_min: float, free_max: float) -> Iterator[Values]:
    """Yield the disks that programs write to and that have too little free space.

    Args:
        used_min: At least this share, from 0 to 1, is used.
        free_max: Less than this number of bytes is free.
    """
    machine = facts.machine
    for mount in machine.names("disk", "usedFraction"):
        used_share = machine.number(f"disk.{mount}.usedFraction")
        free_bytes = machine.number(f"disk.{mount}.freeBytes")
        is_written = not machine.flag(f"disk.{mount}.readOnly") or _shares_space(facts, mount)
        if used_share is None or free_bytes is None or not is_written:
            continue
        if used_share >= used_min and free_bytes < free_max:
            size = machine.number(f"disk.{mount}.sizeBytes")
            total_text = "" if size is None else f" of {format_bytes(size)}"
            yield {"mount": mount, "free": format_bytes(free_bytes) + total_text}


def _shares_space(facts: SnapshotFacts, mount: str) -> bool:
    """Return whether a mount is the read-only system volume of macOS.

    This volume and the volume of the user's files share their free space.
    """
    return mount == "/" and facts.machine.text("disk./.fileSystem") == "apfs"


def _full(facts: SnapshotFacts) -> Iterator[Values]:
    return _disks(facts, DISK_FULL, DISK_FULL_FREE)


def _filling(facts: SnapshotFacts) -> Iterator[Values]:
    full = {match["mount"] for match in _full(facts)}
    filling = _disks(facts, DISK_FILLING, DISK_FILLING_FREE)
    return (match for match in filling if match["mount"] not in full)


def _read_only(facts: SnapshotFacts) -> Iterator[Values]:
    for mount in facts.machine.names("disk", "readOnly"):
        file_system = facts.machine.text(f"disk.{mount}.fileSystem")
        # A disk without errors was made read-only on purpose. If the number of errors is unknown,
        # the disk may have some.
        can_have_errors = facts.machine.number(f"disk.{mount}.errors") != 0
        is_read_only = facts.machine.flag(f"disk.{mount}.readOnly")
        if is_read_only and can_have_errors and _is_written_to(mount, file_system):
            yield {"mount": mount}


def _is_written_to(mount: str, file_system: str) -> bool:
    if mount == "/":
        return file_system not in _MADE_READ_ONLY
    return mount.startswith(_WRITTEN_TO) or mount[:3].upper() == "C:\\"


def _unreadable(facts: SnapshotFacts) -> Iterator[Values]:
    for mount in facts.machine.names("disk", "sizeBytes"):
        why = facts.machine.why_failed(f"disk.{mount}.sizeBytes")
        key = f"disk.{mount}.fileSystem"
        # A card reader without a card is reported as a disk without a file system.
        is_empty = facts.machine.is_known(key) and not facts.machine.text(key)
        if why is not None and not is_empty:
            yield {"mount": mount, "why": why}


def _has_health(health: str) -> Detect[SnapshotFacts]:
    def detect(facts: SnapshotFacts) -> Iterator[Values]:
        for name in facts.machine.names("disk.drive", "health"):
            if facts.machine.text(f"disk.drive.{name}.health") == health:
                yield {"drive": _drive(facts, name)}

    return detect


def _worn(facts: SnapshotFacts) -> Iterator[Values]:
    for name in facts.machine.names("disk.drive", "lifeUsedFraction"):
        used = facts.machine.number(f"disk.drive.{name}.lifeUsedFraction")
        if used is not None and used >= WORN:
            yield {"drive": _drive(facts, name), "used": percent(used)}


def _drive(facts: SnapshotFacts, name: str) -> str:
    model = facts.machine.text(f"disk.drive.{name}.model")
    return f"{name} ({model})" if model else name


_FREE_SPACE: Final = "delete or move files that are not needed: old logs, downloads, backups"

DISK_RULES: Final[tuple[Rule[SnapshotFacts], ...]] = (
    ProblemRule(
        "disk-full",
        "disk.<mount>.usedFraction, disk.<mount>.freeBytes",
        f"{percent(DISK_FULL)} used and less than {format_bytes(DISK_FULL_FREE)} free,"
        " on a writable disk or on / of macOS",
        "The disk {mount} is full: {free} free.",
        f"{_FREE_SPACE}; until then programs may fail to save data",
        _full,
    ),
    ProblemRule(
        "disk-read-only",
        "disk.<mount>.readOnly, disk.<mount>.errors",
        "read-only where programs write: / (unless its file system is made to be read-only), /home,"
        " /opt, /srv, /tmp, /var, C:; a disk on which the kernel counted no errors is ignored",
        "The disk {mount} is read-only: programs cannot save data on it.",
        "restart the machine and check the disk: the system stops writing after disk errors",
        _read_only,
    ),
    ProblemRule(
        "disk-silent",
        "disk.<mount>.sizeBytes, disk.<mount>.fileSystem",
        "its size could not be read; a disk without a file system, such as a card reader without a"
        " card, is ignored",
        "The disk {mount} cannot be read: {why}.",
        "if it is a network disk, check that its server can be reached; otherwise check the disk",
        _unreadable,
    ),
    ProblemRule(
        "drive-failing",
        "disk.drive.<name>.health",
        "failing",
        "The drive {drive} is failing according to its self-diagnosis (SMART).",
        "back up its data today and replace it",
        _has_health("failing"),
    ),
    WarningRule(
        "disk-nearly-full",
        "disk.<mount>.usedFraction, disk.<mount>.freeBytes",
        f"{percent(DISK_FILLING)} used and less than {format_bytes(DISK_FILLING_FREE)} free,"
        " on a writable disk or on / of macOS",
        "The disk {mount} is nearly full: {free} free.",
        _FREE_SPACE,
        _filling,
    ),
    WarningRule(
        "drive-doubtful",
        "disk.drive.<name>.health",
        "warning",
        "The drive {drive} reports a warning (SMART).",
        "back up its data and plan its replacement",
        _has_health("warning"),
    ),
    WarningRule(
        "drive-worn",
        "disk.drive.<name>.lifeUsedFraction",
        f"at least {percent(WORN)}",
        "The drive {drive} is worn: {used} of its lifetime is used.",
        "plan its replacement: a worn memory card becomes read-only or loses data",
        _worn,
    ),
    WarningRule(
        "disk-slow",
        "disk.stalledFraction",
        f"at least {percent(STALLED_BY_DISK)} of the last minute",
        "Programs waited for a disk during {share} of the last minute.",
        "check for a running backup or update; if it lasts, check the drive",
        at_least("disk.stalledFraction", STALLED_BY_DISK, "share", percent),
    ),
)
