"""Finds receipt printers at serial ports in sysfs, and determines whether serial ports exist.

A port counts as a printer only if its USB device is of a maker of receipt printers, or if the
device's product name is that of a printer.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from collectors.network.observations import KnownPrinter
from collectors.shared.sysfs import read_line

PORTS_MAX = 256
_PARENTS_MAX = 4  # how many folders above a port are searched for its USB device
_PRINTER_MAKERS = frozenset(
    {
        "04b8",  # Seiko Epson
        "0519",  # Star Micronics
        "0dd4",  # Custom
        "1504",  # Bixolon
        "1d90",  # Citizen
        "0aa7",  # Wincor Nixdorf
        "0404",  # NCR
    }
)
_PRINTER_WORDS = re.compile(r"(?i)\b(?:printer|receipt|tm-[a-z]\d|tsp\d)")


def read_serial_printers(sys_root: Path = Path("/sys")) -> tuple[KnownPrinter, ...]:
    """Return the serial ports whose USB device is a printer; () if the system has no sysfs."""
    printers = (
        _read_port(port) for port in islice(sorted(sys_root.glob("class/tty/tty*")), PORTS_MAX)
    )
    return tuple(printer for printer in printers if printer is not None)


def is_port_present(path: str, root: Path = Path("/")) -> bool:
    """Return whether the device file of a serial port (``/dev/ttyUSB0``) exists below ``root``."""
    return (root / path.lstrip("/")).exists()


def with_serial(
    known: Sequence[KnownPrinter],
    plugged: Sequence[KnownPrinter],
    is_present: Callable[[str], bool] | None,
) -> tuple[KnownPrinter, ...]:
    """Add to each serial printer whether its port exists, and add the plugged-in printers at ports
    that no known printer uses."""
    printers = tuple(_with_port(printer, is_present) for printer in known)
    used_paths = {printer.address for printer in known}
    return printers + tuple(device for device in plugged if device.address not in used_paths)


def _read_port(port: Path) -> KnownPrinter | None:
    device = _usb_device(port)
    if device is None:
        return None
    maker, model = (read_line(device / name) or "" for name in ("manufacturer", "product"))
    is_printer_maker = read_line(device / "idVendor") in _PRINTER_MAKERS
    if not is_printer_maker and not _PRINTER_WORDS.search(model):
        return None
    name, path = f"{maker} {model}".strip(), f"/dev/{port.name}"
    return KnownPrinter(
        id=f"serial:{path}",
        name=name or path,
        transport="serial",
        source="serial",
        address=path,
        serial=read_line(device / "serial"),
        make_model=name or None,
        present=True,
        presence_reason=f"plugged in as serial port {path}",
    )


def _usb_device(port: Path) -> Path | None:
    """Return the USB device of a port: the first of its parent folders with a vendor id."""
    try:
        place = (port / "device").resolve(strict=True)
    except OSError:
        return None
    return next(
        (p for p in islice(place.parents, _PARENTS_MAX) if (p / "idVendor").is_file()), None
    )


def _with_port(printer: KnownPrinter, is_present: Callable[[str], bool] | None) -> KnownPrinter:
    path = printer.address
    if printer.transport != "serial" or printer.present is not None:
        return printer
    if is_present is None or path is None or not path.startswith("/dev/"):
        return printer
    present = is_present(path)
    reason = f"serial port {path} exists" if present else f"serial port {path} does not exist"
    return replace(printer, present=present, presence_reason=reason)
