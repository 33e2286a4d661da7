"""The rules on disks: room, writing, drives that fail or wear out."""

from collections.abc import Iterator
from typing import Final

from agent.presentation.findings.rule import Rule, Sighting
from agent.presentation.findings.snapshot_facts import SnapshotFacts
from agent.presentation.humanize import bytes_in_words, percent

_GIB: Final = 1024**3

DISK_FULL, DISK_FULL_FREE = 0.97, 2 * _GIB
DISK_FILLING, DISK_FILLING_FREE = 0.90, 10 * _GIB
WORN: Final = 0.9
STALLED_BY_DISK: Final = 0.4

_MADE_READ_ONLY: Final = frozenset({"apfs", "overlay", "composefs", "erofs", "squashfs"})
"""File systems under ``/`` that are sealed on purpose: macOS and image-based systems."""
_WRITTEN_TO: Final = ("/home", "/opt", "/srv", "/tmp", "/var")  # noqa: S108 - names to look for


def _disks(facts: SnapshotFacts, used: float, free: float) -> Iterator[Sighting]:
    """Yield the disks that programs can write to and that are used and free beyond the two."""
    disk = facts.machine
    for mount in disk.names("disk", "usedFraction"):
        used_there = disk.number(f"disk.{mount}.usedFraction")
        free_there = disk.number(f"disk.{mount}.freeBytes")
        if used_there is None or free_there is None or disk.flag(f"disk.{mount}.readOnly"):
            continue
        if used_there >= used and free_there < free:
            size = disk.number(f"disk.{mount}.sizeBytes")
            of = "" if size is None else f" of {bytes_in_words(size)}"
            yield {"mount": mount, "free": bytes_in_words(free_there) + of}


def _full(facts: SnapshotFacts) -> Iterator[Sighting]:
    return _disks(facts, DISK_FULL, DISK_FULL_FREE)


def _filling(facts: SnapshotFacts) -> Iterator[Sighting]:
    full = {seen["mount"] for seen in _full(facts)}
    return (
        seen for seen in _disks(facts, DISK_FILLING, DISK_FILLING_FREE) if seen["mount"] not in full
    )


def _read_only(facts: SnapshotFacts) -> Iterator[Sighting]:
    for mount in facts.machine.names("disk", "readOnly"):
        kind = facts.machine.text(f"disk.{mount}.fileSystem")
        if facts.machine.flag(f"disk.{mount}.readOnly") and _is_written_to(mount, kind):
            yield {"mount": mount}


def _is_written_to(mount: str, file_system: str) -> bool:
    if mount == "/":
        return file_system not in _MADE_READ_ONLY
    return mount.startswith(_WRITTEN_TO) or mount[:3].upper() == "C:\\"


def _silent(facts: SnapshotFacts) -> Iterator[Sighting]:
    for mount in facts.machine.names("disk", "sizeBytes"):
        why = facts.machine.why_failed(f"disk.{mount}.sizeBytes")
        kind = f"disk.{mount}.fileSystem"
        # A card reader without a card is a disk without a file system.
        is_empty = facts.machine.is_known(kind) and not facts.machine.text(kind)
        if why is not None and not is_empty:
            yield {"mount": mount, "why": why}


def _drives(facts: SnapshotFacts, health: str) -> Iterator[Sighting]:
    for name in facts.machine.names("disk.drive", "health"):
        if facts.machine.text(f"disk.drive.{name}.health") == health:
            yield {"drive": _drive(facts, name)}


def _failing(facts: SnapshotFacts) -> Iterator[Sighting]:
    return _drives(facts, "failing")


def _doubtful(facts: SnapshotFacts) -> Iterator[Sighting]:
    return _drives(facts, "warning")


def _worn(facts: SnapshotFacts) -> Iterator[Sighting]:
    for name in facts.machine.names("disk.drive", "lifeUsedFraction"):
        used = facts.machine.number(f"disk.drive.{name}.lifeUsedFraction")
        if used is not None and used >= WORN:
            yield {"drive": _drive(facts, name), "used": percent(used)}


def _drive(facts: SnapshotFacts, name: str) -> str:
    model = facts.machine.text(f"disk.drive.{name}.model")
    return f"{name} ({model})" if model else name


def _slow(facts: SnapshotFacts) -> Iterator[Sighting]:
    stalled = facts.machine.number("disk.stalledFraction")
    if stalled is not None and stalled >= STALLED_BY_DISK:
        yield {"share": percent(stalled)}


_MAKE_ROOM: Final = "delete or move what is not needed: old logs, downloads, backups"

DISK_RULES: Final[tuple[Rule[SnapshotFacts], ...]] = (
    Rule(
        "disk-full",
        "problem",
        "disk.<mount>.usedFraction, disk.<mount>.freeBytes",
        f"{percent(DISK_FULL)} used and less than {bytes_in_words(DISK_FULL_FREE)} free,"
        " unless read-only",
        "The disk {mount} is full: {free} free.",
        f"{_MAKE_ROOM}; until then programs may fail to save",
        _full,
    ),
    Rule(
        "disk-read-only",
        "problem",
        "disk.<mount>.readOnly",
        "read-only where programs write: / (unless sealed by its system), /home, /opt, /srv,"
        " /tmp, /var, C:",
        "The disk {mount} is read-only: nothing can be saved on it.",
        "restart the machine and have the disk checked: after errors the system stops writing",
        _read_only,
    ),
    Rule(
        "disk-silent",
        "problem",
        "disk.<mount>.sizeBytes, disk.<mount>.fileSystem",
        "its size could not be read, though it has a file system",
        "The disk {mount} cannot be read: {why}.",
        "where it is of another machine, see that this runs and is reached; else check the disk",
        _silent,
    ),
    Rule(
        "drive-failing",
        "problem",
        "disk.drive.<name>.health",
        "failing",
        "The drive {drive} is failing, by its own diagnosis (SMART).",
        "back its data up today and replace it",
        _failing,
    ),
    Rule(
        "disk-nearly-full",
        "warning",
        "disk.<mount>.usedFraction, disk.<mount>.freeBytes",
        f"{percent(DISK_FILLING)} used and less than {bytes_in_words(DISK_FILLING_FREE)} free,"
        " unless read-only",
        "The disk {mount} is nearly full: {free} free.",
        _MAKE_ROOM,
        _filling,
    ),
    Rule(
        "drive-doubtful",
        "warning",
        "disk.drive.<name>.health",
        "warning",
        "The drive {drive} warns of its own state.",
        "back its data up and plan to replace it",
        _doubtful,
    ),
    Rule(
        "drive-worn",
        "warning",
        "disk.drive.<name>.lifeUsedFraction",
        f"at least {percent(WORN)}",
        "The drive {drive} is worn: {used} of its life is used.",
        "plan to replace it; a worn memory card becomes read-only or loses data",
        _worn,
    ),
    Rule(
        "disk-slow",
        "warning",
        "disk.stalledFraction",
        f"at least {percent(STALLED_BY_DISK)} of the last minute",
        "Programs waited for a disk during {share} of the last minute.",
        "look for a backup or an update that runs now; if it lasts, check the drive",
        _slow,
    ),
)
