"""Rules for the machine: memory, processor, clock, restarts, heat and power."""

from collections.abc import Iterator
from typing import Final

from agent.presentation.findings.conditions import at_least, if_flag
from agent.presentation.findings.rule import NoteRule, ProblemRule, Rule, Values, WarningRule
from agent.presentation.findings.snapshot_facts import SnapshotFacts
from agent.presentation.humanize import format_bytes, format_milliseconds, format_seconds, percent

_GIB: Final = 1024**3

# Thresholds of the rules below. Shares are from 0 to 1.
MEMORY_USED, MEMORY_FREE = 0.92, 1 * _GIB
SWAP_USED, SWAP_MEMORY_USED = 0.8, 0.8
STALLED_BY_MEMORY: Final = 0.1
LOAD_PER_CORE, CPU_USED = 1.5, 0.9
CLOCK_OFF_MS: Final = 1000
UPTIME_DAYS: Final = 120
RECENT_START_DAYS: Final = 7
HOT_CELSIUS, HOT_BELOW_LIMIT = 85, 15
"""A sensor is hot at or above the higher of two temperatures: `HOT_CELSIUS`, and `HOT_BELOW_LIMIT`
°C below its limit. At its limit, a sensor is always hot."""
BATTERY_LOW, BATTERY_WORN, DEVICE_BATTERY_LOW = 0.2, 0.5, 0.15

_DAY_S: Final = 86400
_UNCLEAN: Final = {
    "kernel-crash": "a crash of the system's kernel",
    "watchdog": "a reset by the watchdog, because the machine hung",
    "overheating": "overheating",
    "power-failure": "a power failure",
    "power-failure-or-crash": "a power failure or a crash",
    "unexpected-shutdown": "an unexpected shutdown",
}


def _memory_full(facts: SnapshotFacts) -> Iterator[Values]:
    used_share = facts.machine.number("memory.usedFraction")
    free = facts.machine.number("memory.availableBytes")
    if used_share is None or free is None:
        return
    if used_share >= MEMORY_USED and free < MEMORY_FREE:
        yield {"used": percent(used_share), "free": format_bytes(free)}


def _swapping(facts: SnapshotFacts) -> Iterator[Values]:
    total = facts.machine.number("memory.swapTotalBytes")
    swap_bytes = facts.machine.number("memory.swapUsedBytes")
    used_share = facts.machine.number("memory.usedFraction")
    # macOS adds swap files as long as the disk has space, so a nearly full swap space is normal.
    is_growing = facts.machine.text("os.name") == "macOS"
    if not total or swap_bytes is None or used_share is None or is_growing:
        return
    if swap_bytes / total >= SWAP_USED and used_share >= SWAP_MEMORY_USED:
        yield {"swapped": format_bytes(swap_bytes), "total": format_bytes(total)}


def _busy(facts: SnapshotFacts) -> Iterator[Values]:
    load = facts.machine.number("cpu.load15")
    cores = facts.machine.number("hardware.logicalCores")
    used_share = facts.machine.number("cpu.useFraction")
    if load is None or not cores or used_share is None:
        return
    if load >= LOAD_PER_CORE * cores and used_share >= CPU_USED:
        yield {"load": f"{load:.1f}", "cores": f"{cores:.0f}"}


def _clock_off(facts: SnapshotFacts) -> Iterator[Values]:
    offset = facts.machine.number("os.clockOffsetMilliseconds")
    if offset is not None and abs(offset) >= CLOCK_OFF_MS:
        yield {"offset": format_milliseconds(abs(offset))}


def _unclean_start(facts: SnapshotFacts) -> Iterator[Values]:
    uptime = facts.machine.number("os.uptimeSeconds")
    reason = _UNCLEAN.get(facts.machine.text("os.lastBootReason"))
    if reason and (uptime is None or uptime < RECENT_START_DAYS * _DAY_S):
        ago = "" if uptime is None else f"{format_seconds(uptime, units=1)} ago"
        yield {"ago": ago, "reason": reason}


def _hot(facts: SnapshotFacts) -> Iterator[Values]:
    # The temperature of the sensor that is closest to its limit.
    temperature = facts.machine.number("hardware.temperatureCelsius")
    limit = facts.machine.number("hardware.temperatureLimitCelsius")
    hot = HOT_CELSIUS if limit is None else min(limit, max(HOT_CELSIUS, limit - HOT_BELOW_LIMIT))
    if temperature is not None and temperature >= hot:
        sensors = (text.rpartition(" ") for text in facts.machine.texts("hardware.temperatures"))
        sensor = next((name for name, _, value in sensors if value == f"{temperature:.1f}"), "")
        degrees = f"{temperature:.0f} °C"
        yield {"degrees": f"{degrees} ({sensor})" if sensor else degrees}


def _battery_low(facts: SnapshotFacts) -> Iterator[Values]:
    level = facts.machine.number("hardware.batteryFraction")
    is_on_battery = facts.machine.text("hardware.powerSource") == "battery"
    if level is not None and is_on_battery and level <= BATTERY_LOW:
        yield {"level": percent(level)}


def _battery_worn(facts: SnapshotFacts) -> Iterator[Values]:
    health = facts.machine.number("hardware.batteryHealthFraction")
    if health is not None and health <= BATTERY_WORN:
        yield {"health": percent(health)}


def _device_battery_low(facts: SnapshotFacts) -> Iterator[Values]:
    for _, device in facts.peripherals:
        # The report leaves out the names of devices that might be private, such as headphones. A
        # device without a name is skipped, because the finding could not name it.
        name, level = device.text("bluetooth.name"), device.number("bluetooth.batteryFraction")
        if name and level is not None and level <= DEVICE_BATTERY_LOW:
            yield {"device": name, "level": percent(level)}


MACHINE_RULES: Final[tuple[Rule[SnapshotFacts], ...]] = (
    ProblemRule(
        "memory-stalls",
        "memory.stalledFraction",
        f"at least {percent(STALLED_BY_MEMORY)} of the last minute",
        "Programs waited for memory during {share} of the last minute.",
        "close unneeded programs, restart the one that uses most memory, or add memory",
        at_least("memory.stalledFraction", STALLED_BY_MEMORY, "share", percent),
    ),
    ProblemRule(
        "battery-low",
        "hardware.batteryFraction, hardware.powerSource",
        f"at most {percent(BATTERY_LOW)}, not plugged in",
        "The machine runs on its battery, which is at {level}.",
        "plug it in; if it is plugged in, check the power supply",
        _battery_low,
    ),
    WarningRule(
        "memory-nearly-full",
        "memory.usedFraction, memory.availableBytes",
        f"{percent(MEMORY_USED)} used and less than {format_bytes(MEMORY_FREE)} available",
        "The memory is nearly full: {used} used, {free} available.",
        "close unneeded programs, restart the one that uses most memory, or add memory",
        _memory_full,
    ),
    WarningRule(
        "swap-nearly-full",
        "memory.swapUsedBytes, memory.swapTotalBytes, memory.usedFraction, os.name",
        f"{percent(SWAP_USED)} of the swap space and {percent(SWAP_MEMORY_USED)} of the memory"
        " used, unless on macOS, whose swap space grows",
        "The swap space is nearly full: {swapped} of {total} used.",
        "restart the program that uses most memory before the system kills one, or add memory",
        _swapping,
    ),
    WarningRule(
        "processor-busy",
        "cpu.load15, hardware.logicalCores, cpu.useFraction",
        f"15-minute load of at least {LOAD_PER_CORE} per core, and at least {percent(CPU_USED)} of"
        " the processor in use now",
        "The processor has been overloaded for 15 minutes: load {load} on {cores} cores.",
        "find the program that causes the load (top, Activity Monitor) and restart it",
        _busy,
    ),
    WarningRule(
        "clock-not-synchronised",
        "os.clockSynchronised",
        "false",
        "The clock is not synchronised.",
        "enable time synchronisation and allow NTP (UDP port 123): a wrong clock breaks TLS and"
        " puts wrong dates on receipts",
        if_flag("os.clockSynchronised", False),
    ),
    WarningRule(
        "clock-off",
        "os.clockOffsetMilliseconds",
        f"off by at least {format_milliseconds(CLOCK_OFF_MS)}",
        "The clock is off by {offset}.",
        "check that the time servers can be reached, then restart time synchronisation",
        _clock_off,
    ),
    WarningRule(
        "unclean-start",
        "os.lastBootReason, os.uptimeSeconds",
        "a crash, hang, overheating, power failure or unexpected shutdown in the last"
        f" {RECENT_START_DAYS} days",
        "The machine started {ago} after {reason}.",
        "check its power supply and ventilation; if it happens again, have it repaired",
        _unclean_start,
    ),
    WarningRule(
        "hot",
        "hardware.temperatureCelsius, hardware.temperatureLimitCelsius",
        f"at least {HOT_CELSIUS} °C, and at most {HOT_BELOW_LIMIT} °C below the sensor's limit;"
        " or at this limit",
        "The machine is hot: {degrees}.",
        "clean its fan and openings, and improve the ventilation",
        _hot,
    ),
    WarningRule(
        "battery-worn",
        "hardware.batteryHealthFraction",
        f"at most {percent(BATTERY_WORN)}",
        "The battery is worn: it holds {health} of its original charge.",
        "plan its replacement; until then keep the machine plugged in",
        _battery_worn,
    ),
    WarningRule(
        "device-battery-low",
        "bluetooth.batteryFraction, bluetooth.name",
        f"at most {percent(DEVICE_BATTERY_LOW)}, for a device with a name",
        "The battery of {device} is at {level}.",
        "charge it or replace its battery",
        _device_battery_low,
    ),
    NoteRule(
        "restart-pending",
        "os.pendingReboot",
        "true",
        "An update requires a restart of the machine.",
        "restart it when the venue is closed",
        if_flag("os.pendingReboot", True),
    ),
    NoteRule(
        "long-uptime",
        "os.uptimeSeconds",
        f"at least {UPTIME_DAYS} days",
        "The machine has been running for {time} without a restart.",
        "restart it when the venue is closed, to apply updates",
        at_least(
            "os.uptimeSeconds", UPTIME_DAYS * _DAY_S, "time", lambda s: format_seconds(s, units=1)
        ),
    ),
)
