"""Reads memory and processor load on every platform, and power on macOS and Windows."""

import math
import os
from functools import cache
from typing import Final

import psutil

from collectors.application.deadline import Deadline
from collectors.application.source import (
    Fields,
    Reading,
    all_absent,
    available,
    fact,
    left_out,
    not_applicable,
    source,
)
from collectors.contract import Field

SOURCE: Final = "psutil"
WINDOW_S: Final = 1.0
CORES_MAX: Final = 64
POWER_KEYS: Final = (
    "hardware.batteryFraction",
    "hardware.batteryCharging",  # whether the machine is plugged in, even if its battery is full
    "hardware.powerSource",
)
FREQUENCY_MIN_MHZ: Final = 50
"""A lower frequency counts as unknown: psutil returns 4 MHz for an Apple M4, and 0 if it does not
know the frequency."""


@source("memory", SOURCE, "memory.totalBytes", "memory.availableBytes", "memory.usedFraction")
def read_memory(_: Deadline) -> Fields:
    memory = _memory()
    used_share = round(1 - memory.available / memory.total, 4)
    return (
        available("memory.totalBytes", SOURCE, memory.total),
        available("memory.availableBytes", SOURCE, memory.available),
        available("memory.usedFraction", SOURCE, used_share),
    )


def memory_size_field() -> Field:
    """Return the field hardware.memoryBytes. It has the same value as memory.totalBytes."""
    return available("hardware.memoryBytes", SOURCE, _memory().total)


@source("swap", SOURCE, "memory.swapTotalBytes", "memory.swapUsedBytes")
def read_swap(_: Deadline) -> Fields:
    """Read the swap space.

    On Windows, psutil reads it from performance counters. The swap space is a separate source, so
    that no other fields are missing if these counters are switched off.
    """
    swap = psutil.swap_memory()
    return (
        available("memory.swapTotalBytes", SOURCE, swap.total),
        available("memory.swapUsedBytes", SOURCE, swap.used),
    )


@source("cpu", SOURCE, "cpu.useFraction", "cpu.busiestCoreUseFraction", "cpu.frequencyMegahertz")
def read_cpu(_: Deadline) -> Reading:
    """Measure every core over one second."""
    uses = [percent / 100 for percent in psutil.cpu_percent(WINDOW_S, percpu=True)]
    overall = sum(uses) / len(uses) if uses else 0.0
    cores = tuple(
        available(f"cpu.core.{number}.useFraction", SOURCE, round(use, 4))
        for number, use in enumerate(uses[:CORES_MAX])
    )
    fields = (
        available("cpu.useFraction", SOURCE, round(overall, 4)),
        available("cpu.busiestCoreUseFraction", SOURCE, round(max(uses, default=0.0), 4)),
        _frequency(),
        *cores,
    )
    return Reading(fields, limitations=left_out(len(uses), CORES_MAX, "processor cores"))


@source("load", "getloadavg", "cpu.load1", "cpu.load5", "cpu.load15")
def read_load(_: Deadline) -> Fields:
    if not hasattr(os, "getloadavg"):
        reason = "this system has no load average"
        return all_absent(read_load.keys, "getloadavg", "unsupported", reason)
    one, five, fifteen = (round(load, 2) for load in os.getloadavg())
    return (
        available("cpu.load1", "getloadavg", one),
        available("cpu.load5", "getloadavg", five),
        available("cpu.load15", "getloadavg", fifteen),
    )


@source("power", SOURCE, *POWER_KEYS)
def read_power(_: Deadline) -> Fields:
    """Read the battery and the power source."""
    level_key, plugged_key, power_key = POWER_KEYS
    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    if battery is None:
        reason = "this machine has no battery"
        return (
            not_applicable(level_key, SOURCE, reason),
            not_applicable(plugged_key, SOURCE, reason),
            available(power_key, SOURCE, "mains"),
        )
    is_plugged = battery.power_plugged
    return (
        available(level_key, SOURCE, round(battery.percent / 100, 3)),
        fact(plugged_key, SOURCE, is_plugged, "the battery does not report it"),
        fact(power_key, SOURCE, power_source(is_plugged), "the battery does not report it"),
    )


def power_source(is_plugged: bool | None) -> str | None:
    if is_plugged is None:
        return None
    return "mains" if is_plugged else "battery"


@cache
def _memory() -> "psutil._ntp.svmem":
    """Read the memory once. A process takes only one snapshot."""
    return psutil.virtual_memory()


def _frequency() -> Field:
    try:
        frequency = psutil.cpu_freq() if hasattr(psutil, "cpu_freq") else None
    except (NotImplementedError, OSError, RuntimeError, SystemError):
        # psutil raises NotImplementedError or OSError on ARM boards whose driver reports no
        # frequency, and RuntimeError or SystemError on an Apple M5.
        frequency = None
    current = frequency.current if frequency and math.isfinite(frequency.current) else 0.0
    known = round(current) if current >= FREQUENCY_MIN_MHZ else None
    return fact("cpu.frequencyMegahertz", SOURCE, known, "the processor does not report it")
