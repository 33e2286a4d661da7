"""Reads the machine's batteries and chargers from sysfs.

Source: Documentation/ABI/testing/sysfs-class-power of the Linux kernel. Sysfs also lists
wireless mice and keyboards, with the scope "Device". They are left out, because their batteries are
not the machine's.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.readers.resources import (
    NO_BATTERY,
    NOT_REPORTED_BY_BATTERY,
    POWER_KEYS,
    battery_fields,
    no_battery_fields,
)
from collectors.application.source import Fields, Origin, source
from collectors.shared.sysfs import children, read_line, read_number

ORIGIN: Final = Origin("sysfs power_supply")
HEALTH: Final = "hardware.batteryHealthFraction"


@source("power", ORIGIN, *POWER_KEYS, HEALTH)
def read_power(_: Deadline, root: Path) -> Fields:
    """Read the charge of all batteries together, and the health of the most worn one."""
    supplies = [
        path
        for path in children(root / "sys/class/power_supply")
        if read_line(path / "scope") != "Device" and read_number(path / "present") != 0
    ]
    batteries = [path for path in supplies if read_line(path / "type") == "Battery"]
    if not batteries:
        return (*no_battery_fields(ORIGIN), ORIGIN.not_applicable(HEALTH, NO_BATTERY))
    levels = [n for path in batteries if (n := read_number(path / "capacity")) is not None]
    level = round(sum(levels) / len(levels) / 100, 3) if levels else None
    is_plugged = _is_plugged([path for path in supplies if path not in batteries], batteries)
    health = min(filter(None, map(_health, batteries)), default=None)
    return (
        *battery_fields(ORIGIN, level, is_plugged),
        ORIGIN.fact(HEALTH, health, NOT_REPORTED_BY_BATTERY),
    )


def _is_plugged(chargers: Iterable[Path], batteries: Iterable[Path]) -> bool | None:
    online = {read_number(path / "online") for path in chargers} - {None}
    if online:
        return online != {0}
    states = {read_line(path / "status") for path in batteries} - {None, "Unknown"}
    return "Discharging" not in states if states else None


def _health(battery: Path) -> float | None:
    """Return the charge that a full battery holds, as a share of what it held when it was new."""
    for kind in ("energy", "charge"):
        full, new = (
            read_number(battery / f"{kind}_full"),
            read_number(battery / f"{kind}_full_design"),
        )
        if full and new and full > 0 and new > 0:
            return round(min(1.0, full / new), 3)
    return None
