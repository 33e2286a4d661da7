"""Whether the local device of a USB or serial printer is there, and which device it is."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from collectors.network.observations import KnownPrinter
from collectors.network.printers.serial_ports import SerialPrinter
from collectors.network.printers.usb import UsbPrinter


def with_usb(
    known: Sequence[KnownPrinter], plugged: Sequence[UsbPrinter] | None
) -> tuple[KnownPrinter, ...]:
    """Say of each USB printer whether it is plugged in; add those nobody set up.

    ``plugged`` is None where this system does not tell. Recognised by serial number, by device
    file, or by the model when only one such printer is plugged in.
    """
    if plugged is None:
        return tuple(known)
    used: set[str] = set()
    told = tuple(_with_device(each, plugged, used) for each in known)
    return told + tuple(_plugged(each) for each in plugged if each.bus_id not in used)


def with_serial(
    known: Sequence[KnownPrinter],
    plugged: Sequence[SerialPrinter],
    is_present: Callable[[str], bool] | None,
) -> tuple[KnownPrinter, ...]:
    """Say of each serial printer whether its port exists; add printers found on a port."""
    told = tuple(_with_port(each, is_present) for each in known)
    taken = {each.address for each in known}
    found = (_on_port(each) for each in plugged if each.path not in taken)
    return told + tuple(found)


def _with_device(
    printer: KnownPrinter, plugged: Sequence[UsbPrinter], used: set[str]
) -> KnownPrinter:
    if printer.transport != "usb" or printer.present is not None:
        return printer
    device, by = _find(printer, plugged)
    if device is None:
        return replace(printer, present=False, presence_reason=_missing(printer, by))
    used.add(device.bus_id)
    place = device.path or f"USB device {device.bus_id}"
    return replace(
        printer,
        present=True,
        presence_reason=f"plugged in by USB as {place}, recognised by {by}",
        address=printer.address or device.path or f"usb:{device.bus_id}",
        serial=printer.serial or device.serial,
    )


def _find(printer: KnownPrinter, plugged: Sequence[UsbPrinter]) -> tuple[UsbPrinter | None, str]:
    """Return the device and by what it was known, or None and what was looked for."""
    if printer.serial:
        same = [each for each in plugged if each.serial == printer.serial]
        if same:
            return same[0], f"serial number {printer.serial}"
    if printer.address and printer.address.startswith("/dev/"):
        return next((e for e in plugged if e.path == printer.address), None), "its device file"
    if printer.serial:
        return None, f"serial number {printer.serial}"
    model = _plain(printer.make_model)
    same = [each for each in plugged if model and _plain(each.make_model) == model]
    if len(same) == 1:
        return same[0], f"model {same[0].make_model}"
    if len(plugged) == 1 and not model:
        return plugged[0], "being the only USB printer"
    return None, "several of its model" if len(same) > 1 else "model"


def _missing(printer: KnownPrinter, by: str) -> str:
    if by == "several of its model":
        return "several USB printers of this model are plugged in and none gives a serial number"
    what = printer.make_model if by == "model" else None
    looked_for = f"model {what}" if what else by
    return f"no USB printer with {looked_for} is plugged in or switched on"


def _plugged(device: UsbPrinter) -> KnownPrinter:
    model = device.make_model or f"USB printer {device.vendor_id}:{device.product_id}"
    return KnownPrinter(
        id=f"usb:{device.serial or device.bus_id}",
        name=model,
        transport="usb",
        source="usb",
        address=device.path or f"usb:{device.bus_id}",
        serial=device.serial,
        make_model=model,
        present=True,
        presence_reason="plugged in by USB; no queue of this machine uses it",
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


def _plain(model: str | None) -> str:
    return "".join(c for c in (model or "").lower() if c.isalnum())
