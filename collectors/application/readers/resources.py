"""Reads memory and processor load on every platform, and power on macOS and Windows."""

import math
import os
from functools import cache
from typing import Final

import psutil

from collectors.application.deadline import Deadline
from collectors.application.source import Fields, Origin, Reading, left_out, source
from collectors.contract import Field

PSUTIL: Final = Origin("psutil")
LOAD_AVERAGE: Final = Origin("getloadavg")
WINDOW_S: Final = 1.0
CORES_MAX: Final = 64
POWER_KEYS: Final = (
    "hardware.batteryFraction",
    "hardware.batteryCharging",  # whether the machine is plugged in, even if its battery is full
    "hardware.powerSource",
)
NO_BATTERY: Final = "this machine has no battery"
NOT_REPORTED_BY_BATTERY: Final = "the battery does not report it"
FREQUENCY_MIN_MHZ: Final = 50
"""A lower frequency counts as unknown: psutil returns 4 MHz for an Apple M4, and 0 if it does not
know the frequency."""


@source("memory", PSUTIL, "memory.totalBytes", "memory.availableBytes", "memory.usedFraction")
def read_memory(_: Deadline) -> Fields:
    memory = _memory()
    used_share = round(1 - memory.available / memory.total, 4)
    yield PSUTIL.available("memory.totalBytes", memory.total)
    yield PSUTIL.available("memory.availableBytes", memory.available)
    yield PSUTIL.available("memory.usedFraction", used_share)


def memory_size_field() -> Field:
    """Return the field hardware.memoryBytes. It has the same value as memory.totalBytes."""
    return PSUTIL.available("hardware.memoryBytes", _memory().total)


@source("swap", PSUTIL, "memory.swapTotalBytes", "memory.swapUsedBytes")
def read_swap(_: Deadline) -> Fields:
    """Read the swap space.

    On Windows, psutil reads it from performance counters. The swap space is a separate source, so
    that no other fields are missing if these counters are switched off.
    """
    swap = psutil.swap_memory()
    yield PSUTIL.available("memory.swapTotalBytes", swap.total)
    yield PSUTIL.available("memory.swapUsedBytes", swap.used)


@source("cpu", PSUTIL, "cpu.useFraction", "cpu.busiestCoreUseFraction", "cpu.frequencyMegahertz")
def read_cpu(_: Deadline) -> Reading:
    """Measure every core over one second."""
    uses = [percent / 100 for percent in psutil.cpu_percent(WINDOW_S, percpu=True)]
    overall = sum(uses) / len(uses) if uses else 0.0
    cores = tuple(
        PSUTIL.available(f"cpu.core.{number}.useFraction", round(use, 4))
        for number, use in enumerate(uses[:CORES_MAX])
    )
    fields = (
        PSUTIL.available("cpu.useFraction", round(overall, 4)),
        PSUTIL.available("cpu.busiestCoreUseFraction", round(max(uses, default=0.0), 4)),
        _frequency(),
        *cores,
    )
    return Reading(fields, limitations=left_out(len(uses), CORES_MAX, "processor cores"))


@source("load", LOAD_AVERAGE, "cpu.load1", "cpu.load5", "cpu.load15")
def read_load(_: Deadline) -> Fields:
    if not hasattr(os, "getloadavg"):
        reason = "this system has no load average"
        return LOAD_AVERAGE.all_absent(read_load.keys, "unsupported", reason)
    loads = (round(load, 2) for load in os.getloadavg())
    return map(LOAD_AVERAGE.available, read_load.keys, loads)


@source("power", PSUTIL, *POWER_KEYS)
def read_power(_: Deadline) -> Fields:
    """Read the battery and the power source."""
    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    if battery is None:
        return no_battery_fields(PSUTIL)
    return battery_fields(PSUTIL, round(battery.percent / 100, 3), battery.power_plugged)


def no_battery_fields(origin: Origin) -> Fields:
    """Return the fields of `POWER_KEYS` for a machine without a battery."""
    *battery_keys, power_key = POWER_KEYS
    absences = origin.all_absent(battery_keys, "not-applicable", NO_BATTERY)
    return (*absences, origin.available(power_key, "mains"))


def battery_fields(origin: Origin, level: float | None, is_plugged: bool | None) -> Fields:
    """Return the fields of `POWER_KEYS`. ``level`` is the charge of the battery, from 0 to 1."""
    power_source = {True: "mains", False: "battery", None: None}[is_plugged]
    values = (level, is_plugged, power_source)
    return tuple(
        origin.fact(key, value, NOT_REPORTED_BY_BATTERY)
        for key, value in zip(POWER_KEYS, values, strict=True)
    )


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
    return PSUTIL.fact("cpu.frequencyMegahertz", known, "the processor does not report it")
