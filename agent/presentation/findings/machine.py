"""The rules on the machine itself: memory, processor, clock, restarts, heat and power."""

from collections.abc import Iterator
from typing import Final

from agent.presentation.findings.rule import HERE, Rule, Sighting
from agent.presentation.findings.snapshot_facts import SnapshotFacts
from agent.presentation.humanize import (
    bytes_in_words,
    milliseconds_in_words,
    percent,
    seconds_in_words,
)

_GIB: Final = 1024**3

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
_UNCLEAN: Final = {
    "kernel-crash": "a crash of the system's kernel",
    "watchdog": "a hang, which its watchdog ended",
    "overheating": "it had become too hot",
    "power-failure": "a power failure",
    "power-failure-or-crash": "a power failure or a crash",
    "unexpected-shutdown": "a shutdown that nobody asked for",
}


def _stalled_by_memory(facts: SnapshotFacts) -> Iterator[Sighting]:
    stalled = facts.machine.number("memory.stalledFraction")
    if stalled is not None and stalled >= STALLED_BY_MEMORY:
        yield {"share": percent(stalled)}


def _memory_full(facts: SnapshotFacts) -> Iterator[Sighting]:
    used = facts.machine.number("memory.usedFraction")
    free = facts.machine.number("memory.availableBytes")
    if used is not None and free is not None and used >= MEMORY_USED and free < MEMORY_FREE:
        yield {"used": percent(used), "free": bytes_in_words(free)}


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
        yield {"level": percent(level)}


def _device_battery_low(facts: SnapshotFacts) -> Iterator[Sighting]:
    for _, device in facts.peripherals:
        # People's own devices are not named.
        name, level = device.text("bluetooth.name"), device.number("bluetooth.batteryFraction")
        if name and level is not None and level <= DEVICE_BATTERY_LOW:
            yield {"device": name, "level": percent(level)}


MACHINE_RULES: Final[tuple[Rule[SnapshotFacts], ...]] = (
    Rule(
        "memory-stalls",
        "problem",
        "memory.stalledFraction",
        f"at least {percent(STALLED_BY_MEMORY)} of the last minute",
        "Programs waited for memory during {share} of the last minute.",
        "close programs that are not needed or restart the one that has grown; fit more memory",
        _stalled_by_memory,
    ),
    Rule(
        "battery-low",
        "problem",
        "hardware.batteryFraction, hardware.powerSource",
        f"at most {percent(BATTERY_LOW)}, not plugged in",
        "The machine runs on its battery, which is at {level}.",
        "plug it in; where it is plugged in, check the power supply",
        _battery_low,
    ),
    Rule(
        "memory-nearly-full",
        "warning",
        "memory.usedFraction, memory.availableBytes",
        f"{percent(MEMORY_USED)} used and less than {bytes_in_words(MEMORY_FREE)} available",
        "The memory is nearly full: {used} used, {free} available.",
        "close programs that are not needed or restart the one that has grown; fit more memory",
        _memory_full,
    ),
    Rule(
        "swap-nearly-full",
        "warning",
        "memory.swapUsedBytes, memory.swapTotalBytes, memory.usedFraction",
        f"{percent(SWAP_USED)} of it and {percent(SWAP_MEMORY_USED)} of the memory used",
        "The swap space is nearly full: {swapped} of {total} used.",
        "restart the program that has grown, else the system will end one; fit more memory",
        _swapping,
    ),
    Rule(
        "processor-busy",
        "warning",
        "cpu.load15, hardware.logicalCores, cpu.useFraction",
        f"load over 15 minutes at least {LOAD_PER_CORE} a core, and {percent(CPU_USED)} used now",
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
        "bluetooth.batteryFraction, bluetooth.name",
        f"at most {percent(DEVICE_BATTERY_LOW)}, of a device that is named",
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
