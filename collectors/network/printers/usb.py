"""Finds plugged-in USB printers in sysfs: their interfaces have class 7.

Source: Universal Serial Bus Device Class Definition for Printing Devices, version 1.1.
"""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from collectors.network.matching.identity import real_serial
from collectors.network.printers.device_id import SERIAL_KEYS, join_model, model_of, parse_device_id
from collectors.shared.sysfs import read_line

DEVICES_MAX = 256
_INTERFACES_PER_DEVICE = 8  # an estimate: no more than DEVICES_MAX times this many are read
_PRINTER_CLASS = "07"


@dataclass(frozen=True, slots=True)
class UsbPrinter:
    """A plugged-in printer. ``bus_id`` is like ``1-1.2``, ``path`` like ``/dev/usb/lp0``.

    ``device_id`` is its IEEE 1284 device id, from which CUPS builds device URIs. If the kernel
    has suspended the device, ``suspended_sysfs_path`` is its folder in sysfs, else None.
    """

    bus_id: str
    maker: str = ""
    model: str = ""
    serial: str | None = None
    vendor_id: str = ""
    product_id: str = ""
    path: str | None = None
    device_id: str = ""
    suspended_sysfs_path: str | None = None

    @property
    def make_model(self) -> str:
        return join_model(self.maker, self.model)

    @property
    def models(self) -> tuple[str, ...]:
        """The names of its model. The name from its device id comes first."""
        model = model_of(parse_device_id(self.device_id))
        return tuple(name for name in (model, self.make_model, self.model) if name)

    @property
    def serials(self) -> frozenset[str]:
        """Its serial numbers from USB and from its device id, without placeholders."""
        device_id = parse_device_id(self.device_id)
        texts = (self.serial, *(device_id.get(key) for key in SERIAL_KEYS))
        return frozenset(serial for text in texts if (serial := real_serial(text)))


def read_usb_printers(sys_root: Path = Path("/sys")) -> tuple[UsbPrinter, ...] | None:
    """Return the USB printers, or None if this system has no USB devices in sysfs."""
    devices = sys_root / "bus/usb/devices"
    if not devices.is_dir():
        return None
    interfaces = sorted(devices.glob("*:*"))
    printers: dict[str, UsbPrinter] = {}
    for interface in islice(interfaces, DEVICES_MAX * _INTERFACES_PER_DEVICE):
        if read_line(interface / "bInterfaceClass") != _PRINTER_CLASS:
            continue
        bus_id = interface.name.partition(":")[0]
        if len(printers) < DEVICES_MAX:
            printers.setdefault(bus_id, _read_printer(devices / bus_id, interface))
    return tuple(printers.values())


def _read_printer(device: Path, interface: Path) -> UsbPrinter:
    nodes = sorted(node.name for node in interface.glob("usbmisc/lp*"))
    status = read_line(device / "power/runtime_status")
    return UsbPrinter(
        bus_id=device.name,
        maker=read_line(device / "manufacturer") or "",
        model=read_line(device / "product") or "",
        serial=read_line(device / "serial"),
        vendor_id=read_line(device / "idVendor") or "",
        product_id=read_line(device / "idProduct") or "",
        path=f"/dev/usb/{nodes[0]}" if nodes else None,
        device_id=read_line(interface / "ieee1284_id") or "",
        suspended_sysfs_path=str(device) if status == "suspended" else None,
    )
