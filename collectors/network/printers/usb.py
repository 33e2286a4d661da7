"""Finds plugged-in USB printers in sysfs, and determines which printers of the machine they are.

The interfaces of a USB printer have class 7 (Universal Serial Bus Device Class Definition for
Printing Devices, version 1.1).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from collectors.network.matching.identity import real_serial
from collectors.network.matching.models import is_same_model, plain_model
from collectors.network.observations import KnownPrinter
from collectors.network.printers.device_id import SERIAL_KEYS, join_model, model_of, parse_device_id
from collectors.shared.sysfs import read_line

DEVICES_MAX = 256
_INTERFACES_PER_DEVICE = 8  # an estimate: no more than DEVICES_MAX times this many are read
_PRINTER_CLASS = "07"

_UNNAMED = "no plugged-in USB printer has a model that matches the name of this printer"
_SEVERAL = (
    "several plugged-in USB printers match, and no serial number distinguishes them, so it is"
    " unknown which of them is this printer"
)
_MAYBE_USED = "it is not known whether a queue of this machine uses it"


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


def with_usb(
    known: Sequence[KnownPrinter], plugged: Sequence[UsbPrinter] | None
) -> tuple[KnownPrinter, ...]:
    """Add to each USB printer whether it is plugged in, and add the printers without a queue.

    ``plugged`` are all plugged-in printers, or None if this system does not report USB printers. A
    printer is recognised by its device file, by a serial number that only one device has, or by the
    model if only one device of the model is plugged in. A printer without these three values is
    recognised only if it is the only plugged-in printer.
    """
    if plugged is None:
        return tuple(known)
    used: set[str] = set()
    printers = tuple(_with_device(printer, plugged, used) for printer in known)
    is_sure = not any(e.backend or (e.transport == "usb" and e.present is None) for e in printers)
    return printers + tuple(
        _unused_printer(e, is_sure=is_sure) for e in plugged if e.bus_id not in used
    )


def _with_device(
    printer: KnownPrinter, plugged: Sequence[UsbPrinter], used: set[str]
) -> KnownPrinter:
    if printer.transport != "usb" or printer.present is not None or printer.backend:
        return printer
    devices, by = _find(printer, plugged)
    if not devices and plugged and printer.dns_sd_name:
        # It may be plugged in although no model matches: its DNS-SD name may lack the model.
        return replace(printer, presence_reason=_UNNAMED)
    if not devices and (missing := _describe_missing_file(printer, plugged)):
        return replace(printer, present=False, presence_reason=missing, is_file_missing=True)
    if not devices:
        reason = f"no USB printer{f' with {by}' if by else ''} is plugged in and switched on"
        return replace(printer, present=False, presence_reason=reason)
    if len(devices) > 1:
        return replace(printer, presence_reason=_SEVERAL)
    device = devices[0]
    used.add(device.bus_id)
    place = device.path or f"USB device {device.bus_id}"
    return replace(
        printer,
        present=True,
        presence_reason=f"plugged in by USB as {place}, recognised by {by}",
        address=printer.address or device.path or f"usb:{device.bus_id}",
        serial=printer.serial or real_serial(device.serial),
        suspended_sysfs_path=device.suspended_sysfs_path,
    )


def _describe_missing_file(printer: KnownPrinter, plugged: Sequence[UsbPrinter]) -> str | None:
    """Return a reason if a printer is plugged in, but the queue's device file is missing."""
    path = printer.address or ""
    devices_without_file = [device for device in plugged if device.path is None]
    if not path.startswith("/dev/") or len(devices_without_file) != 1:
        return None
    model = devices_without_file[0].make_model or "a printer"
    return f"{model} is plugged in by USB, but {path} is missing"


def _find(printer: KnownPrinter, plugged: Sequence[UsbPrinter]) -> tuple[list[UsbPrinter], str]:
    """Return the devices that may be the printer, and the property by which they were searched."""
    if printer.address and printer.address.startswith("/dev/"):
        by = f"device file {printer.address}"
        return [device for device in plugged if device.path == printer.address], by
    if printer.serial:
        by = f"serial number {printer.serial}"
        same = [device for device in plugged if printer.serial in device.serials]
        if len(same) > 1:  # this serial number does not identify a device
            same = _of_model(printer, same) or same
        return same, by
    if not plain_model(printer.make_model):
        return list(plugged), "being the only USB printer" if plugged else ""
    return _of_model(printer, plugged), f"model {printer.make_model}"


def _of_model(printer: KnownPrinter, plugged: Sequence[UsbPrinter]) -> list[UsbPrinter]:
    return [e for e in plugged if any(is_same_model(printer.make_model, m) for m in e.models)]


def _unused_printer(device: UsbPrinter, *, is_sure: bool) -> KnownPrinter:
    """Return the printer of a device that no queue uses.

    ``is_sure`` is False if a queue might use it, because the device of some queue is not known.
    """
    unused = "no queue of this machine uses it"
    model = device.make_model or f"USB printer {device.vendor_id}:{device.product_id}"
    return KnownPrinter(
        id=f"usb:{real_serial(device.serial) or device.bus_id}",
        name=model,
        transport="usb",
        source="usb",
        address=device.path or f"usb:{device.bus_id}",
        serial=real_serial(device.serial),
        make_model=model,
        present=True,
        presence_reason=f"plugged in by USB; {unused if is_sure else _MAYBE_USED}",
    )
