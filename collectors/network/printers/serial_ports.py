"""Finds receipt printers at serial ports in sysfs, and tests whether a serial port exists.

A port counts as a printer only if its USB device is of a maker of receipt printers, or if the
device's product name is that of a printer.
"""

import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

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


@dataclass(frozen=True, slots=True)
class SerialPrinter:
    path: str
    make_model: str = ""
    serial: str | None = None


def read_serial_printers(sys_root: Path = Path("/sys")) -> tuple[SerialPrinter, ...]:
    """Return the serial ports whose USB device is a printer; () if the system has no sysfs."""
    printers = (
        _read_port(port) for port in islice(sorted(sys_root.glob("class/tty/tty*")), PORTS_MAX)
    )
    return tuple(printer for printer in printers if printer is not None)


def is_port_present(path: str, root: Path = Path("/")) -> bool:
    """Return whether the device file of a serial port (``/dev/ttyUSB0``) exists below ``root``."""
    return (root / path.lstrip("/")).exists()


def _read_port(port: Path) -> SerialPrinter | None:
    device = _usb_device(port)
    if device is None:
        return None
    maker, model = (read_line(device / name) or "" for name in ("manufacturer", "product"))
    is_printer_maker = read_line(device / "idVendor") in _PRINTER_MAKERS
    if not is_printer_maker and not _PRINTER_WORDS.search(model):
        return None
    name = f"{maker} {model}".strip()
    return SerialPrinter(f"/dev/{port.name}", name, read_line(device / "serial"))


def _usb_device(port: Path) -> Path | None:
    """Return the USB device of a port: the first of its parent folders with a vendor id."""
    try:
        place = (port / "device").resolve(strict=True)
    except OSError:
        return None
    return next(
        (p for p in islice(place.parents, _PARENTS_MAX) if (p / "idVendor").is_file()), None
    )
