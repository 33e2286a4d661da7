"""The rules on the machine itself: disks, memory, processor, clock, restarts, heat and power."""

from collections.abc import Iterator
from typing import Final

from agent.presentation.findings.rule import HERE, Rule, Sighting
from agent.presentation.findings.snapshot_facts import SnapshotFacts
from agent.presentation.humanize import bytes_in_words, milliseconds_in_words, seconds_in_words

_GIB: Final = 1024**3

DISK_FULL, DISK_FULL_FREE = 0.97, 2 * _GIB
DISK_FILLING, DISK_FILLING_FREE = 0.90, 10 * _GIB
WORN: Final = 0.9
STALLED_BY_DISK: Final = 0.4
MEMORY_USED, MEMORY_FREE = 0.92, 1 * _GIB
SWAP_USED, SWAP_MEMORY_USED = 0.8, 0.8
STALLED_BY_MEMORY: Final = 0.1
LOAD_PER_CORE, CPU_USED = 1.5, 0.9
CLOCK_OFF_MS: Final = 1000
UPTIME_DAYS: Final = 120
RECENT_START_DAYS: Final = 7
HOT_CELSIUS: Final = 85
BATTERY_LOW, DEVICE_BATTERY_LOW = 0.2, 0.15

_DAY_S: Final = 86400
_MADE_READ_ONLY: Final = frozenset({"apfs", "overlay", "composefs", "erofs", "squashfs"})
"""File systems under ``/`` that are sealed on purpose: macOS and image-based systems."""
_WRITTEN_TO: Final = ("/home", "/opt", "/srv", "/tmp", "/var")  # noqa: S108 - names to look for
_UNCLEAN: Final = {
    "kernel-crash": "a crash of the system's kernel",
    "watchdog": "a hang, which its watchdog ended",
    "overheating": "it had become too hot",
    "power-failure": "a power failure",
    "power-failure-or-crash": "a power failure or a crash",
    "unexpected-shutdown": "a shutdown that nobody asked for",
}


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
        if why is not None:
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
            yield {"drive": _drive(facts, name), "used": f"{used:.0%}"}


def _drive(facts: SnapshotFacts, name: str) -> str:
    model = facts.machine.text(f"disk.drive.{name}.model")
    return f"{name} ({model})" if model else name


def _stalled(facts: SnapshotFacts, key: str, share: float) -> Iterator[Sighting]:
    stalled = facts.machine.number(key)
    if stalled is not None and stalled >= share:
        yield {"share": f"{stalled:.0%}"}


def _stalled_by_disk(facts: SnapshotFacts) -> Iterator[Sighting]:
    return _stalled(facts, "disk.stalledFraction", STALLED_BY_DISK)


def _stalled_by_memory(facts: SnapshotFacts) -> Iterator[Sighting]:
    return _stalled(facts, "memory.stalledFraction", STALLED_BY_MEMORY)


def _memory_full(facts: SnapshotFacts) -> Iterator[Sighting]:
    used = facts.machine.number("memory.usedFraction")
    free = facts.machine.number("memory.availableBytes")
    if used is not None and free is not None and used >= MEMORY_USED and free < MEMORY_FREE:
        yield {"used": f"{used:.0%}", "free": bytes_in_words(free)}


def _swapping(facts: SnapshotFacts) -> Iterator[Sighting]:
    total = facts.machine.number("memory.swapTotalBytes")
    swapped = facts.machine.number("memory.swapUsedBytes")
    used = facts.machine.number("memory.usedFraction")
    if not total or swapped is None or used is None:
        return
    if swapped / total >= SWAP_USED and used >= SWAP_MEMORY_USED:
        yield {"swapped": bytes_in_words(swapped), "total": bytes_in_words(total)}


def _busy(facts: SnapshotFacts) -> Iterator[Sighting]:
    load = facts.machine.number("cpu.load15")
    cores = facts.machine.number("hardware.logicalCores")
    used = facts.machine.number("cpu.useFraction")
    if load is None or not cores or used is None:
        return
    if load >= LOAD_PER_CORE * cores and used >= CPU_USED:
        yield {"load": f"{load:.1f}", "cores": f"{cores:.0f}"}


def _out_of_step(facts: SnapshotFacts) -> tuple[Sighting, ...]:
    return HERE if facts.machine.flag("os.clockSynchronised") is False else ()


def _clock_off(facts: SnapshotFacts) -> Iterator[Sighting]:
    offset = facts.machine.number("os.clockOffsetMilliseconds")
    if offset is not None and abs(offset) >= CLOCK_OFF_MS:
        yield {"offset": milliseconds_in_words(abs(offset))}


def _restart_pending(facts: SnapshotFacts) -> tuple[Sighting, ...]:
    return HERE if facts.machine.flag("os.pendingReboot") else ()


def _long_up(facts: SnapshotFacts) -> Iterator[Sighting]:
    uptime = facts.machine.number("os.uptimeSeconds")
    if uptime is not None and uptime >= UPTIME_DAYS * _DAY_S:
        yield {"time": seconds_in_words(uptime, units=1)}


def _unclean_start(facts: SnapshotFacts) -> Iterator[Sighting]:
    uptime = facts.machine.number("os.uptimeSeconds")
    reason = _UNCLEAN.get(facts.machine.text("os.lastBootReason"))
    if reason and (uptime is None or uptime < RECENT_START_DAYS * _DAY_S):
        ago = "" if uptime is None else f"{seconds_in_words(uptime, units=1)} ago"
        yield {"ago": ago, "reason": reason}


def _hot(facts: SnapshotFacts) -> Iterator[Sighting]:
    hottest = facts.machine.number("hardware.temperatureCelsius")
    if hottest is not None and hottest >= HOT_CELSIUS:
        named = (text.rpartition(" ") for text in facts.machine.texts("hardware.temperatures"))
        sensor = next((name for name, _, at in named if at == f"{hottest:.1f}"), "")
        yield {"degrees": f"{hottest:.0f} °C ({sensor})" if sensor else f"{hottest:.0f} °C"}


def _battery_low(facts: SnapshotFacts) -> Iterator[Sighting]:
    level = facts.machine.number("hardware.batteryFraction")
    is_on_battery = facts.machine.text("hardware.powerSource") == "battery"
    if level is not None and is_on_battery and level <= BATTERY_LOW:
        yield {"level": f"{level:.0%}"}


def _device_battery_low(facts: SnapshotFacts) -> Iterator[Sighting]:
    for name, device in facts.peripherals:
        level = device.number("bluetooth.batteryFraction")
        if level is not None and level <= DEVICE_BATTERY_LOW:
            yield {"device": device.text("bluetooth.name") or name, "level": f"{level:.0%}"}


_MAKE_ROOM: Final = "delete or move what is not needed: old logs, downloads, backups"

MACHINE_RULES: Final[tuple[Rule[SnapshotFacts], ...]] = (
    Rule(
        "disk-full",
        "problem",
        "disk.<mount>.usedFraction, disk.<mount>.freeBytes",
        f"{DISK_FULL:.0%} used and less than {bytes_in_words(DISK_FULL_FREE)} free,"
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
        "disk.<mount>.sizeBytes",
        "its size could not be read",
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
        "memory-stalls",
        "problem",
        "memory.stalledFraction",
        f"at least {STALLED_BY_MEMORY:.0%} of the last minute",
        "Programs waited for memory during {share} of the last minute.",
        "close programs that are not needed or restart the one that has grown; fit more memory",
        _stalled_by_memory,
    ),
    Rule(
        "battery-low",
        "problem",
        "hardware.batteryFraction, hardware.powerSource",
        f"at most {BATTERY_LOW:.0%}, not plugged in",
        "The machine runs on its battery, which is at {level}.",
        "plug it in; where it is plugged in, check the power supply",
        _battery_low,
    ),
    Rule(
        "disk-nearly-full",
        "warning",
        "disk.<mount>.usedFraction, disk.<mount>.freeBytes",
        f"{DISK_FILLING:.0%} used and less than {bytes_in_words(DISK_FILLING_FREE)} free,"
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
        f"at least {WORN:.0%}",
        "The drive {drive} is worn: {used} of its life is used.",
        "plan to replace it; a worn memory card becomes read-only or loses data",
        _worn,
    ),
    Rule(
        "disk-slow",
        "warning",
        "disk.stalledFraction",
        f"at least {STALLED_BY_DISK:.0%} of the last minute",
        "Programs waited for a disk during {share} of the last minute.",
        "look for a backup or an update that runs now; if it lasts, check the drive",
        _stalled_by_disk,
    ),
    Rule(
        "memory-nearly-full",
        "warning",
        "memory.usedFraction, memory.availableBytes",
        f"{MEMORY_USED:.0%} used and less than {bytes_in_words(MEMORY_FREE)} available",
        "The memory is nearly full: {used} used, {free} available.",
        "close programs that are not needed or restart the one that has grown; fit more memory",
        _memory_full,
    ),
    Rule(
        "swap-nearly-full",
        "warning",
        "memory.swapUsedBytes, memory.swapTotalBytes, memory.usedFraction",
        f"{SWAP_USED:.0%} of the swap space and {SWAP_MEMORY_USED:.0%} of the memory used",
        "The swap space is nearly full: {swapped} of {total} used.",
        "restart the program that has grown, else the system will end one; fit more memory",
        _swapping,
    ),
    Rule(
        "processor-busy",
        "warning",
        "cpu.load15, hardware.logicalCores, cpu.useFraction",
        f"load over 15 minutes at least {LOAD_PER_CORE} a core, and {CPU_USED:.0%} used now",
        "The processor has been overloaded for 15 minutes: load {load} on {cores} cores.",
        "look for the program that uses it (top, Activity Monitor) and restart it",
        _busy,
    ),
    Rule(
        "clock-not-synchronised",
        "warning",
        "os.clockSynchronised",
        "false",
        "Nothing keeps the clock in step.",
        "switch time synchronisation on and let NTP (UDP port 123) through: a wrong clock breaks"
        " TLS and dates receipts wrongly",
        _out_of_step,
    ),
    Rule(
        "clock-off",
        "warning",
        "os.clockOffsetMilliseconds",
        f"off by at least {milliseconds_in_words(CLOCK_OFF_MS)}",
        "The clock is off by {offset}.",
        "see that the time servers are reached, then restart time synchronisation",
        _clock_off,
    ),
    Rule(
        "unclean-start",
        "warning",
        "os.lastBootReason, os.uptimeSeconds",
        "a crash, hang, overheating, power failure or unexpected shutdown in the last"
        f" {RECENT_START_DAYS} days",
        "The machine started {ago} after {reason}.",
        "check its power supply and ventilation; if it happens again, have it examined",
        _unclean_start,
    ),
    Rule(
        "hot",
        "warning",
        "hardware.temperatureCelsius",
        f"at least {HOT_CELSIUS} °C",
        "The machine is hot: {degrees}.",
        "clean its fan and openings, and give it air",
        _hot,
    ),
    Rule(
        "device-battery-low",
        "warning",
        "bluetooth.batteryFraction",
        f"at most {DEVICE_BATTERY_LOW:.0%}",
        "The battery of {device} is at {level}.",
        "charge it or change its battery",
        _device_battery_low,
    ),
    Rule(
        "restart-pending",
        "note",
        "os.pendingReboot",
        "true",
        "An update waits for a restart of the machine.",
        "restart it when the venue is closed",
        _restart_pending,
    ),
    Rule(
        "long-uptime",
        "note",
        "os.uptimeSeconds",
        f"at least {UPTIME_DAYS} days",
        "The machine has been running for {time} without a restart.",
        "restart it when the venue is closed, so that updates take effect",
        _long_up,
    ),
)
