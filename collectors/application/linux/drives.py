"""Reads the machine's drives and their health.

The SMART verdict comes from UDisks2 or smartctl, the wear of an eMMC from sysfs. Only root can read
the SMART verdict from a drive. UDisks2 is queried first, because it returns the verdict to every
user. Serial numbers and World Wide Names (WWN) are not read.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from collectors.application.deadline import Deadline
from collectors.application.linux import smart
from collectors.application.source import (
    NO_DETAILS,
    Fields,
    Origin,
    Reading,
    Unreadable,
    left_out,
    source,
    status_of,
)
from collectors.application.system_bus import Objects, managed_objects
from collectors.contract import Field
from collectors.shared.sysfs import children, read_line, read_number

UDISKS: Final = Origin("UDisks2")
ORIGIN: Final = Origin("sysfs block")
DRIVES_MAX: Final = 16
_DRIVE = re.compile(r"(sd[a-z]{1,3}|vd[a-z]{1,3}|xvd[a-z]|nvme\d+n\d+|mmcblk\d+)")
_SMART_PREFIXES: Final = ("sd", "nvme")
_BUS_NAME: Final = "org.freedesktop.UDisks2"
_SECTOR_BYTES: Final = 512
_WEAR_STEPS: Final = 11

UDISKS_S: Final = 1.0
"""Time limit for the query of UDisks2."""

Health = dict[str, str]
"""The SMART verdict, good or failing, by device name (``sda``)."""


def query_udisks(deadline: Deadline) -> Objects:
    return managed_objects(_BUS_NAME, "/org/freedesktop/UDisks2", deadline)


@source("drives", ORIGIN, "disk.drives")
def read_drives(
    deadline: Deadline,
    root: Path,
    query: Callable[[Deadline], Objects] = query_udisks,
    query_drive: smart.QueryDrive = smart.read_health,
) -> Reading:
    entries = _drives(root)
    drives = entries[:DRIVES_MAX]
    fields = [ORIGIN.available("disk.drives", tuple(p.name for p in entries))]
    known_health = _known_health(query, deadline) if drives else {}
    for entry in drives:
        fields += drive_fields(entry)
        fields.append(_health(entry.name, known_health, query_drive, deadline))
    limitations = left_out(len(entries), DRIVES_MAX, "drives", NO_DETAILS)
    return Reading(tuple(fields), limitations=limitations)


def drives_for_smartctl(root: Path) -> tuple[str, ...]:
    """Return the names of the drives that smartctl can query."""
    return tuple(p.name for p in _drives(root)[:DRIVES_MAX] if p.name.startswith(_SMART_PREFIXES))


def _drives(root: Path) -> list[Path]:
    return [p for p in children(root / "sys/block") if _DRIVE.fullmatch(p.name)]


def parse_udisks(objects: Objects) -> Health:
    """Return the SMART verdicts, by the name of the block device.

    A drive whose SMART data UDisks2 has never read (``SmartUpdated`` is 0) has no verdict. Its
    other properties have their initial values.
    """
    verdicts = {}
    for interfaces in objects.values():
        block = interfaces.get(f"{_BUS_NAME}.Block", {})
        drive = objects.get(str(block.get("Drive")), {})
        verdict = _verdict(drive)
        name = _device_name(block.get("Device"))
        if verdict and name:
            verdicts[name] = verdict
    return verdicts


def drive_fields(entry: Path) -> Fields:
    """Yield the fields of a drive in sysfs."""
    prefix = f"disk.drive.{entry.name}"
    sectors = read_number(entry / "size")
    rotation = read_number(entry / "queue/rotational")
    rotates = None if rotation is None else rotation == 1
    model = read_line(entry / "device/model") or read_line(entry / "device/name")
    not_reported = "the drive does not report it"
    yield ORIGIN.fact(f"{prefix}.model", model, not_reported)
    yield ORIGIN.fact(f"{prefix}.sizeBytes", sectors and sectors * _SECTOR_BYTES, not_reported)
    yield ORIGIN.fact(f"{prefix}.rotational", rotates, not_reported)
    yield _wear(f"{prefix}.lifeUsedFraction", entry)


def parse_life_time(text: str) -> float | None:
    """Return the higher of eMMC's two wear estimates (JEDEC JESD84-B51, EXT_CSD).

    The estimates are in steps of a tenth. 0x01 means that up to a tenth of the lifetime is used,
    0x0a that more than nine tenths are used, and 0x0b that the lifetime is exceeded.
    """
    if not re.fullmatch(r"0x[0-9a-fA-F]{2}( 0x[0-9a-fA-F]{2})?", text):
        return None
    steps = [step for word in text.split() if 1 <= (step := int(word, 16)) <= _WEAR_STEPS]
    return max(steps) / 10 if steps else None


def _wear(key: str, entry: Path) -> Field:
    if not entry.name.startswith("mmcblk"):
        return ORIGIN.not_applicable(key, "only eMMC reports its wear to all users")
    life_time = parse_life_time(read_line(entry / "device/life_time") or "")
    return ORIGIN.fact(key, life_time, "the card does not report it")


def _verdict(drive: dict[str, dict[str, Any]]) -> str | None:
    ata = drive.get(f"{_BUS_NAME}.Drive.Ata", {})
    is_read = ata.get("SmartUpdated") != 0
    if is_read and ata.get("SmartEnabled") is True and isinstance(ata.get("SmartFailing"), bool):
        return "failing" if ata["SmartFailing"] else "good"
    nvme = drive.get(f"{_BUS_NAME}.NVMe.Controller", {})
    warnings = nvme.get("SmartCriticalWarning")
    if isinstance(warnings, list) and nvme.get("SmartUpdated") != 0:
        return "failing" if warnings else "good"
    return None


def _device_name(value: object) -> str | None:
    """Return ``sda`` for ``/dev/sda``. In UDisks2, a path is a list of bytes that ends with 0."""
    if not isinstance(value, list) or not all(isinstance(b, int) for b in value):
        return None
    try:
        text = bytes(value).decode("ascii")
    except ValueError:
        return None
    return text.rstrip("\0").removeprefix("/dev/") or None


def _known_health(query: Callable[[Deadline], Objects], deadline: Deadline) -> Health | Unreadable:
    """Return the SMART verdicts of UDisks2, or the reason why it could not be queried."""
    try:
        return parse_udisks(query(deadline.sooner(UDISKS_S)))
    except (Unreadable, OSError, ValueError) as error:
        return Unreadable(*status_of(error))


def _health(
    name: str, known_health: Health | Unreadable, query_drive: smart.QueryDrive, deadline: Deadline
) -> Field:
    key = f"disk.drive.{name}.health"
    if isinstance(known_health, Unreadable):
        if known_health.status not in {"not-applicable", "unsupported"}:
            return UDISKS.absent(key, known_health.status, known_health.reason)
        return _query_health(key, name, query_drive, deadline)
    reason = "UDisks2 has no SMART verdict of the drive"
    return UDISKS.fact(key, known_health.get(name), reason)


def _query_health(key: str, name: str, query_drive: smart.QueryDrive, deadline: Deadline) -> Field:
    """Query the drive with smartctl. Virtual drives and memory cards have no SMART verdict."""
    if not name.startswith(_SMART_PREFIXES):
        return smart.SMARTCTL.unsupported(key, "the drive has no SMART verdict")
    try:
        return smart.SMARTCTL.available(key, query_drive(name, deadline))
    except (Unreadable, OSError, ValueError) as error:
        return smart.SMARTCTL.absent(key, *status_of(error))
