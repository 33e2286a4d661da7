"""Reads the screens that are connected to the machine, from the kernel's graphics drivers."""

import re
from pathlib import Path
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.linux.edid import parse_edid
from collectors.application.source import NO_DETAILS, Fields, Origin, Reading, left_out, source
from collectors.shared.sysfs import children, read_bytes, read_line

ORIGIN: Final = Origin("sysfs drm")
DISPLAYS_MAX: Final = 16
_CONNECTOR = re.compile(r"card\d+-(.{1,40})")


@source("displays", ORIGIN, "display.count", "display.connectors")
def read_displays(_: Deadline, root: Path) -> Reading:
    directory = root / "sys/class/drm"
    connectors = [(m[1], p) for p in children(directory) if (m := _CONNECTOR.fullmatch(p.name))]
    if not connectors:
        reason = "this machine has no graphics output"
        return Reading(ORIGIN.all_absent(read_displays.keys, "not-applicable", reason))
    connected = [
        (name, path) for name, path in connectors if read_line(path / "status") == "connected"
    ]
    fields = [
        ORIGIN.available("display.count", len(connected)),
        ORIGIN.available("display.connectors", tuple(name for name, _ in connectors)),
    ]
    for name, path in connected[:DISPLAYS_MAX]:
        fields += _screen(f"display.{name}", path)
    limitations = left_out(len(connected), DISPLAYS_MAX, "screens", NO_DETAILS)
    return Reading(tuple(fields), limitations=limitations)


def _screen(prefix: str, path: Path) -> Fields:
    try:
        screen = parse_edid(read_bytes(path / "edid"))
    except OSError:
        screen = None
    not_reported = "the screen does not report it"
    power = read_line(path / "dpms")
    yield ORIGIN.fact(f"{prefix}.preferredMode", _first_mode(path), "the driver lists no mode")
    yield ORIGIN.fact(f"{prefix}.enabled", _enabled(path), "the driver does not report it")
    yield ORIGIN.fact(f"{prefix}.power", power, "the driver does not report it")
    yield ORIGIN.fact(f"{prefix}.maker", screen.maker if screen else None, not_reported)
    yield ORIGIN.fact(f"{prefix}.model", screen.name if screen else None, not_reported)


def _first_mode(path: Path) -> str | None:
    return next(iter((read_line(path / "modes") or "").split()), None)


def _enabled(path: Path) -> bool | None:
    text = read_line(path / "enabled")
    return None if text is None else text == "enabled"
