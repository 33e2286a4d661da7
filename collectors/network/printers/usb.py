"""USB printers that are plugged in: interfaces of class 7 in sysfs (USB printer class, 1.1)."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from collectors.shared.text import clean_text

DEVICES_MAX = 256
_PRINTER_CLASS = "07"
_ATTRIBUTE_MAX = 512


@dataclass(frozen=True, slots=True)
class UsbPrinter:
    """A plugged-in printer. ``bus_id`` is like ``1-1.2``, ``path`` like ``/dev/usb/lp0``."""

    bus_id: str
    maker: str = ""
    model: str = ""
    serial: str | None = None
    vendor_id: str = ""
    product_id: str = ""
    path: str | None = None

    @property
    def make_model(self) -> str:
        is_repeated = self.model.lower().startswith(self.maker.lower())
        return self.model if is_repeated else f"{self.maker} {self.model}".strip()


def read_usb_printers(sys_root: Path = Path("/sys")) -> tuple[UsbPrinter, ...] | None:
    """Return the USB printers; None where this system has no USB in sysfs."""
    devices = sys_root / "bus/usb/devices"
    if not devices.is_dir():
        return None
    interfaces = sorted(devices.glob("*:*"))
    printers: dict[str, UsbPrinter] = {}
    for interface in islice(interfaces, DEVICES_MAX * 8):
        if _read(interface / "bInterfaceClass") != _PRINTER_CLASS:
            continue
        bus_id = interface.name.partition(":")[0]
        if len(printers) < DEVICES_MAX:
            printers.setdefault(bus_id, _read_printer(devices / bus_id, interface))
    return tuple(printers.values())


def _read_printer(device: Path, interface: Path) -> UsbPrinter:
    nodes = sorted(node.name for node in interface.glob("usbmisc/lp*"))
    return UsbPrinter(
        bus_id=device.name,
        maker=_read(device / "manufacturer"),
        model=_read(device / "product"),
        serial=_read(device / "serial") or None,
        vendor_id=_read(device / "idVendor"),
        product_id=_read(device / "idProduct"),
        path=f"/dev/usb/{nodes[0]}" if nodes else None,
    )


def _read(path: Path) -> str:
    """Return a sysfs attribute, cleaned; "" where there is none."""
    try:
        with path.open("rb") as file:
            return clean_text(file.read(_ATTRIBUTE_MAX).decode("utf-8", "replace"))
    except OSError:
        return ""
