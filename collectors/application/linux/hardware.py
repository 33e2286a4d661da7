"""Reads maker, model, processor and temperatures of the machine. Serial numbers are never read."""

import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from collectors.application.deadline import Deadline
from collectors.application.readers.resources import PSUTIL, memory_size_field
from collectors.application.source import Fields, Origin, source
from collectors.shared.sysfs import children, read_line, read_number, read_text

CPUINFO: Final = Origin("/proc/cpuinfo")
DMI: Final = Origin("sysfs dmi")
HWMON: Final = Origin("sysfs hwmon")

_PLACEHOLDERS: Final = frozenset(
    {
        "to be filled by o.e.m.",
        "system manufacturer",
        "system product name",
        "default string",
        "none",
    }
)
_CHASSIS: Final = {
    3: "desktop", 4: "desktop", 5: "desktop", 6: "tower", 7: "tower", 8: "portable", 9: "laptop",
    10: "laptop", 11: "handheld", 13: "all-in-one", 14: "laptop", 17: "server", 23: "server",
    30: "tablet", 31: "convertible", 32: "detachable", 35: "mini-pc", 36: "stick-pc",
}  # fmt: skip
"""Form factors by enclosure type (SMBIOS 3.6, section 7.4.1)."""
_ARM_PARTS: Final = {
    ("0x41", "0xb76"): "ARM1176", ("0x41", "0xc07"): "ARM Cortex-A7",
    ("0x41", "0xc08"): "ARM Cortex-A8", ("0x41", "0xc09"): "ARM Cortex-A9",
    ("0x41", "0xc0d"): "ARM Cortex-A17", ("0x41", "0xc0e"): "ARM Cortex-A17",
    ("0x41", "0xc0f"): "ARM Cortex-A15", ("0x41", "0xd03"): "ARM Cortex-A53",
    ("0x41", "0xd04"): "ARM Cortex-A35", ("0x41", "0xd05"): "ARM Cortex-A55",
    ("0x41", "0xd07"): "ARM Cortex-A57", ("0x41", "0xd08"): "ARM Cortex-A72",
    ("0x41", "0xd09"): "ARM Cortex-A73", ("0x41", "0xd0a"): "ARM Cortex-A75",
    ("0x41", "0xd0b"): "ARM Cortex-A76", ("0x41", "0xd0c"): "ARM Neoverse-N1",
}  # fmt: skip
"""Names of ARM processors by implementer and part number of the register MIDR_EL1.

Source: ARM's technical reference manuals.
"""
_ZONE_CHIPS: Final = {"x86_pkg_temp": "coretemp"}
"""The name of the hwmon chip for each type of thermal zone that hwmon lists under another name."""
_SENSORS_MAX: Final = 64
_PLAUSIBLE_CELSIUS: Final = (-40.0, 150.0)
_PLAUSIBLE_LIMITS: Final = (50.0, 130.0)
"""Lowest and highest plausible limit of a sensor, in degrees Celsius. A limit outside of this range
is ignored."""
_USUAL_LIMIT: Final = 100.0
"""The assumed limit of a sensor that reports none."""
_BOARD_CHIPS = re.compile(r"(?:nct|it8|f7|w83|sch|smsc|dme|lm8|asus)\w*", re.IGNORECASE)
"""Chips that measure a mainboard. They also report inputs to which no sensor is connected, with
random temperatures. Therefore they are not used to find the hottest sensor."""


@source(
    "machine", DMI, "hardware.maker", "hardware.model", "hardware.formFactor", "hardware.firmware"
)
def read_machine(_: Deadline, root: Path) -> Fields:
    dmi = root / "sys/class/dmi/id"
    board = read_line(root / "proc/device-tree/model")
    chassis = _CHASSIS.get(read_number(dmi / "chassis_type") or 0)
    reason = "the firmware does not report it"
    yield DMI.fact("hardware.maker", _dmi_value(dmi, "sys_vendor"), reason)
    yield DMI.fact("hardware.model", _dmi_value(dmi, "product_name") or board, reason)
    yield DMI.fact("hardware.formFactor", chassis, reason)
    yield DMI.fact("hardware.firmware", _dmi_value(dmi, "bios_version"), reason)


@source(
    "processor",
    CPUINFO,
    "hardware.cpuModel",
    "hardware.physicalCores",
    "hardware.logicalCores",
    "hardware.memoryBytes",
)
def read_processor(_: Deadline, root: Path) -> Fields:
    model = parse_cpu_model(read_text(root / "proc/cpuinfo"))
    cores = psutil.cpu_count(logical=False)
    reason = "the kernel does not report which logical cores share a physical core"
    yield CPUINFO.fact("hardware.cpuModel", model, "the processor does not name itself")
    yield PSUTIL.fact("hardware.physicalCores", cores, reason)
    yield PSUTIL.available("hardware.logicalCores", os.cpu_count() or 1)
    yield memory_size_field()


def parse_cpu_model(cpuinfo: str) -> str | None:
    """Return the processor's name.

    On ARM, /proc/cpuinfo has a part number instead of a name, and ``Model`` is the board.
    """
    cpu_info: dict[str, str] = {}
    for line in cpuinfo.splitlines()[:4000]:
        name, _, value = line.partition(":")
        cpu_info.setdefault(name.strip().lower(), value.strip())
    part = (cpu_info.get("cpu implementer", ""), cpu_info.get("cpu part", "").lower())
    # "processor" is the number of a core. On old ARM kernels only, it is the processor's name.
    names = (
        cpu_info.get(key, "") for key in ("model name", "cpu model", "cpu", "uarch", "processor")
    )
    processor = next((name for name in names if name and not name.isdigit()), None)
    return processor or _ARM_PARTS.get(part) or cpu_info.get("hardware") or None


class _Sensor(NamedTuple):
    """A sensor and the temperature that it measured.

    ``limit`` is the temperature at which the measured component switches off, in degrees Celsius.
    It is None if the sensor reports no plausible limit.
    """

    name: str
    celsius: float
    limit: float | None

    @property
    def margin(self) -> float:
        return (self.limit or _USUAL_LIMIT) - self.celsius


@source(
    "temperatures",
    HWMON,
    "hardware.temperatureCelsius",
    "hardware.temperatureLimitCelsius",
    "hardware.temperatures",
)
def read_temperatures(_: Deadline, root: Path) -> Fields:
    """Read every sensor of the kernel once. Thermal zones that are also hwmon chips are skipped.

    The hottest sensor is the one that is closest to its limit.
    """
    chips = tuple(_hwmon(root))
    hwmon_chips = {sensor.name.partition(" ")[0] for sensor in chips}
    sensors = (*chips, *_thermal_zones(root, hwmon_chips))[:_SENSORS_MAX]
    reliable = (sensor for sensor in sensors if _is_reliable(sensor, sensors))
    hottest = min(reliable, key=lambda sensor: sensor.margin, default=None)
    no_sensor = "this machine shows no temperature sensor"
    texts = tuple(f"{sensor.name} {sensor.celsius:.1f}" for sensor in sensors)
    celsius, limit = (hottest.celsius, hottest.limit) if hottest else (None, None)
    no_hottest = "no temperature sensor is reliable" if sensors else no_sensor
    no_limit = "the hottest sensor reports no limit" if hottest else no_hottest
    yield HWMON.fact("hardware.temperatureCelsius", celsius, no_hottest, "not-applicable")
    yield HWMON.fact("hardware.temperatureLimitCelsius", limit, no_limit, "not-applicable")
    yield HWMON.fact("hardware.temperatures", texts or None, no_sensor, "not-applicable")


def _is_reliable(sensor: _Sensor, sensors: Sequence[_Sensor]) -> bool:
    chip, _, label = sensor.name.partition(" ")
    if (chip, label) == ("k10temp", "Tctl"):
        # Some processors add an offset to Tctl (k10temp.rst). They also report Tdie, which has no
        # offset.
        return not any(other.name == "k10temp Tdie" for other in sensors)
    if chip == "nvme":
        # Only the composite sensor has limits (NVMe 2.0, SMART log). A drive's other sensors may be
        # hotter, but there is no limit with which to compare them.
        return label in {"", "Composite"}
    return not _BOARD_CHIPS.fullmatch(chip)


def _hwmon(root: Path) -> Iterator[_Sensor]:
    for chip in children(root / "sys/class/hwmon"):
        for file in sorted(chip.glob("temp*_input"))[:_SENSORS_MAX]:
            label = read_line(file.with_name(file.name.replace("_input", "_label")))
            name = " ".join(filter(None, (read_line(chip / "name"), label)))
            limit = read_number(file.with_name(file.name.replace("_input", "_crit")))
            yield from _plausible_sensor(name or chip.name, read_number(file), limit)


def _thermal_zones(root: Path, hwmon_chips: Collection[str]) -> Iterator[_Sensor]:
    for zone in children(root / "sys/class/thermal"):
        name = read_line(zone / "type") or zone.name
        # The name under which the kernel lists the zone in hwmon (thermal_hwmon.c).
        chip = _ZONE_CHIPS.get(name) or name.replace("-", "_")
        if zone.name.startswith("thermal_zone") and chip not in hwmon_chips:
            yield from _plausible_sensor(name, read_number(zone / "temp"))


def _plausible_sensor(
    name: str, millicelsius: int | None, limit_millicelsius: int | None = None
) -> Iterator[_Sensor]:
    """Yield the sensor if its temperature is plausible."""
    if millicelsius is None:
        return
    celsius = round(millicelsius / 1000, 1)
    limit = None if limit_millicelsius is None else limit_millicelsius / 1000
    if limit is not None and not _PLAUSIBLE_LIMITS[0] <= limit <= _PLAUSIBLE_LIMITS[1]:
        limit = None
    low, high = _PLAUSIBLE_CELSIUS
    if low < celsius < high:
        yield _Sensor(name, celsius, limit)


def _dmi_value(dmi: Path, name: str) -> str | None:
    value = read_line(dmi / name)
    return None if value is None or value.lower() in _PLACEHOLDERS else value
