"""Memory, load and power as psutil measures them on every platform."""

import math
import os
import time
from collections.abc import Sequence
from typing import Final

import psutil

from collectors.application.deadline import Deadline
from collectors.application.keys import LOAD_KEYS, MEMORY_KEYS, POWER_KEYS, SWAP_KEYS
from collectors.application.source import Reading, available, either, unsupported
from collectors.contract import Field

SOURCE: Final = "psutil"
WINDOW_S: Final = 1.0
CORES_MAX: Final = 64


def read_memory(_: Deadline) -> Reading:
    memory = psutil.virtual_memory()
    values = (memory.total, memory.available, round(1 - memory.available / memory.total, 4))
    return Reading(tuple(map(available, MEMORY_KEYS, (SOURCE,) * len(values), values)))


def read_swap(_: Deadline) -> Reading:
    """Apart from memory, because Windows answers from counters that may be switched off."""
    swap = psutil.swap_memory()
    return Reading(tuple(map(available, SWAP_KEYS, (SOURCE,) * 2, (swap.total, swap.used))))


def read_cpu(_: Deadline) -> Reading:
    """Measure every core over one second."""
    before = psutil.cpu_times(percpu=True)
    time.sleep(WINDOW_S)
    uses = core_uses(before, psutil.cpu_times(percpu=True))
    overall = sum(uses) / len(uses) if uses else 0.0
    cores = tuple(
        available(f"cpu.core.{number}.useFraction", SOURCE, round(use, 4))
        for number, use in enumerate(uses[:CORES_MAX])
    )
    cut = len(uses) - len(cores)
    return Reading(
        (
            available("cpu.useFraction", SOURCE, round(overall, 4)),
            available("cpu.busiestCoreUseFraction", SOURCE, round(max(uses, default=0.0), 4)),
            _frequency(),
            *cores,
        ),
        limitations=(f"{cut} processor cores beyond {CORES_MAX} are not listed",) if cut else (),
        truncated=cut > 0,
    )


def core_uses(before: Sequence[object], after: Sequence[object]) -> list[float]:
    """The busy fraction (0 to 1) of each core between two readings of its times."""
    return [_busy(first, last) for first, last in zip(before, after, strict=False)]


def read_load(_: Deadline) -> Reading:
    if not hasattr(os, "getloadavg"):
        reason = "this system has no load average"
        return Reading(tuple(unsupported(key, "getloadavg", reason) for key in LOAD_KEYS))
    loads = (round(load, 2) for load in os.getloadavg())
    return Reading(
        tuple(
            available(key, "getloadavg", load) for key, load in zip(LOAD_KEYS, loads, strict=True)
        )
    )


def read_power(_: Deadline) -> Reading:
    """The battery, and what the machine runs from."""
    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    level_key, charging_key, source_key = POWER_KEYS
    if battery is None:
        reason = "this machine has no battery"
        return Reading(
            (
                either(level_key, SOURCE, None, reason, "not-applicable"),
                either(charging_key, SOURCE, None, reason, "not-applicable"),
                available(source_key, SOURCE, "mains"),
            )
        )
    plugged = battery.power_plugged
    source = None if plugged is None else "mains" if plugged else "battery"
    return Reading(
        (
            available(level_key, SOURCE, round(battery.percent / 100, 3)),
            either(charging_key, SOURCE, plugged, "the battery does not say"),
            either(source_key, SOURCE, source, "the battery does not say"),
        )
    )


def _frequency() -> Field:
    try:
        frequency = psutil.cpu_freq() if hasattr(psutil, "cpu_freq") else None
    except (NotImplementedError, OSError):
        # psutil's answer to an ARM board whose driver shows no frequency
        frequency = None
    current = round(frequency.current) if frequency and math.isfinite(frequency.current) else 0
    return either(
        "cpu.frequencyMegahertz", SOURCE, current or None, "the processor does not tell it"
    )


def _busy(first: object, last: object) -> float:
    # guest time is counted in user time too, so only these make up the whole
    names = (
        "user",
        "nice",
        "system",
        "idle",
        "iowait",
        "irq",
        "softirq",
        "steal",
        "interrupt",
        "dpc",
    )
    spent = {name: getattr(last, name, 0.0) - getattr(first, name, 0.0) for name in names}
    whole = sum(value for value in spent.values() if value > 0)
    idle = max(0.0, spent["idle"]) + max(0.0, spent["iowait"])
    return 0.0 if whole <= 0 else min(1.0, max(0.0, 1 - idle / whole))
