"""Finds the device of a USB or serial printer, and determines whether it is plugged in."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from collectors.network.matching.identity import real_serial
from collectors.network.matching.models import is_same_model, plain_model
from collectors.network.observations import KnownPrinter
from collectors.network.printers.serial_ports import SerialPrinter
from collectors.network.printers.usb import UsbPrinter

_UNNAMED = "no plugged-in USB printer has a model that matches the name of this printer"
_SEVERAL = (
    "several plugged-in USB printers match, and no serial number distinguishes them, so it is"
    " unknown which of them is this printer"
)
_MAYBE_USED = "it is not known whether a queue of this machine uses it"


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


def with_serial(
    known: Sequence[KnownPrinter],
    plugged: Sequence[SerialPrinter],
    is_present: Callable[[str], bool] | None,
) -> tuple[KnownPrinter, ...]:
    """Add to each serial printer whether its port exists, and add the plugged-in printers at ports
    that no known printer uses."""
    printers = tuple(_with_port(printer, is_present) for printer in known)
    used_paths = {printer.address for printer in known}
    detected = (_on_port(device) for device in plugged if device.path not in used_paths)
    return printers + tuple(detected)


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
    """Describe the case that a printer is plugged in, but the queue's device file is missing."""
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


def _with_port(printer: KnownPrinter, is_present: Callable[[str], bool] | None) -> KnownPrinter:
    path = printer.address
    if printer.transport != "serial" or printer.present is not None:
        return printer
    if is_present is None or path is None or not path.startswith("/dev/"):
        return printer
    present = is_present(path)
    reason = f"serial port {path} exists" if present else f"serial port {path} does not exist"
    return replace(printer, present=present, presence_reason=reason)


def _on_port(device: SerialPrinter) -> KnownPrinter:
    return KnownPrinter(
        id=f"serial:{device.path}",
        name=device.make_model or device.path,
        transport="serial",
        source="serial",
        address=device.path,
        serial=device.serial,
        make_model=device.make_model or None,
        present=True,
        presence_reason=f"plugged in as serial port {device.path}",
    )
