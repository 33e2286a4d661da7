"""Creates the fields of USB and Bluetooth devices, and guesses the kind of each USB device."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from collectors.application.source import FieldTuple, Origin, Reading, left_out
from collectors.contract import Field, PeripheralFields
from collectors.shared.text import clean_text

DEVICES_MAX: Final = 128
USB_KEYS: Final = ("peripherals.usbCount",)
BLUETOOTH_KEYS: Final = ("peripherals.bluetoothCount", "peripherals.bluetoothPowered")

_CLASSES: Final = {
    0x01: "audio", 0x02: "communication", 0x03: "input", 0x06: "image", 0x07: "printer",
    0x08: "storage", 0x09: "hub", 0x0A: "communication", 0x0B: "smart-card", 0x0E: "video",
    0xE0: "wireless", 0xFF: "vendor-specific",
}  # fmt: skip
"""Names of USB classes by code (USB-IF, Defined Class Codes)."""

_SPECIFIC_CLASSES: Final = {0x07: "printer", 0x09: "hub", 0x0B: "card-reader"}
"""Kinds of devices by USB class. The other classes do not identify the kind of a device."""

_USAGE_PAGES: Final = {0x8C: "barcode-scanner", 0x8D: "scale", 0x8E: "card-reader"}
"""Kinds of point-of-sale devices by HID usage page (HID Usage Tables 1.5, section 3)."""

_VENDORS: Final = {
    0x04B8: "printer", 0x0519: "printer", 0x04F9: "printer", 0x0DD4: "printer", 0x0A5F: "printer",
    0x0C2E: "barcode-scanner", 0x05E0: "barcode-scanner", 0x05F9: "barcode-scanner",
    0x0EB8: "scale",
    0x0801: "card-reader", 0x0ACD: "card-reader", 0x072F: "card-reader", 0x076B: "card-reader",
    0x08E6: "card-reader", 0x0B00: "payment-terminal", 0x11CA: "payment-terminal",
}  # fmt: skip
"""USB vendor ids, each with the kind of device that a venue most likely has from this vendor.

They are used if neither the class, the HID usage page nor the name identifies the kind.
"""

_WORDS: Final = (
    ("printer", "printer"), ("receipt", "printer"), ("label", "printer"),
    ("barcode", "barcode-scanner"), ("scanner", "barcode-scanner"), ("imager", "barcode-scanner"),
    ("scale", "scale"), ("card reader", "card-reader"), ("smartcard", "card-reader"),
    ("cash drawer", "cash-drawer"), ("camera", "camera"), ("hub", "hub"), ("display", "display"),
    ("keyboard", "keyboard"), ("touch", "touch-screen"), ("mouse", "mouse"),
)  # fmt: skip
"""Words in product names, with the kind of device that each word means. The first match counts."""


@dataclass(frozen=True, slots=True)
class UsbDevice:
    """A USB device.

    Args:
        local_id: The port of the device, or another text that identifies it on this machine.
        classes: Class codes of the device and its interfaces.
        usage_pages: The first usage page of each HID report descriptor of the device.
    """

    local_id: str
    vendor_id: int | None = None
    product_id: int | None = None
    vendor: str | None = None
    product: str | None = None
    classes: tuple[int, ...] = ()
    drivers: tuple[str, ...] = ()
    usage_pages: tuple[int, ...] = ()
    speed_megabits: float | None = None
    serial: str | None = None


def guess_kind(device: UsbDevice) -> str | None:
    """Return the kind of a device by its class, HID usage page, name or maker, in this order."""
    for code in device.classes:
        if code in _SPECIFIC_CLASSES:
            return _SPECIFIC_CLASSES[code]
    for page in device.usage_pages:
        if page in _USAGE_PAGES:
            return _USAGE_PAGES[page]
    name = (device.product or "").lower()
    by_word = next((kind for word, kind in _WORDS if word in name), None)
    return by_word or _VENDORS.get(device.vendor_id or 0)


def usb_fields(device: UsbDevice, origin: Origin) -> PeripheralFields:
    """Return the fields of a USB device, with a fingerprint instead of its serial number."""
    classes = tuple(dict.fromkeys(_CLASSES.get(code, f"0x{code:02x}") for code in device.classes))
    serial = fingerprint(device.serial) if device.serial else None
    not_reported, no_serial = "the device does not report it", "the device has no serial number"
    fields = (
        origin.fact("usb.vendorId", _hex(device.vendor_id), not_reported),
        origin.fact("usb.productId", _hex(device.product_id), not_reported),
        origin.fact("usb.vendor", device.vendor, not_reported),
        origin.fact("usb.product", device.product, not_reported),
        origin.fact("usb.classes", classes or None, not_reported),
        origin.fact("usb.drivers", device.drivers or None, "no driver claims it"),
        origin.fact("usb.speedMegabitsPerSecond", device.speed_megabits, not_reported),
        origin.fact("usb.guess", guess_kind(device), "its kind is unknown"),
        origin.fact("usb.serialFingerprint", serial, no_serial, "not-applicable"),
    )
    return PeripheralFields(f"usb-{clean_text(device.local_id, 64)}", "usb", fields)


@dataclass(frozen=True, slots=True)
class BluetoothDevice:
    """A paired device. Only a fingerprint of ``address`` is reported.

    ``is_personal``: the device may belong to an employee or guest, so ``name`` is not reported.
    """

    address: str
    name: str | None = None
    kind: str | None = None
    connected: bool | None = None
    battery_fraction: float | None = None
    signal_dbm: int | None = None
    is_personal: bool = False


def bluetooth_fields(device: BluetoothDevice, origin: Origin) -> PeripheralFields:
    """Return the fields of a paired device, without the name if the device may be personal."""
    not_reported = "the device does not report it"
    not_collected = "names of devices that may be personal are not collected"
    name = (
        origin.not_applicable("bluetooth.name", not_collected)
        if device.is_personal
        else origin.fact("bluetooth.name", device.name, not_reported)
    )
    fields = (
        name,
        origin.fact("bluetooth.kind", device.kind, not_reported),
        origin.available("bluetooth.paired", True),
        origin.fact("bluetooth.connected", device.connected, not_reported),
        origin.fact("bluetooth.batteryFraction", device.battery_fraction, not_reported),
        origin.fact("bluetooth.signalDbm", device.signal_dbm, not_reported),
    )
    return PeripheralFields(f"bluetooth-{fingerprint(device.address.lower())}", "bluetooth", fields)


def usb_reading(devices: Sequence[UsbDevice], origin: Origin) -> Reading:
    count = origin.available("peripherals.usbCount", len(devices))
    entries = tuple(usb_fields(device, origin) for device in devices)
    return _reading((count,), entries, "USB")


def bluetooth_reading(
    devices: Sequence[BluetoothDevice], powered: Field, origin: Origin
) -> Reading:
    count = origin.available("peripherals.bluetoothCount", len(devices))
    entries = tuple(bluetooth_fields(device, origin) for device in devices)
    return _reading((count, powered), entries, "Bluetooth")


def _reading(fields: FieldTuple, entries: tuple[PeripheralFields, ...], kind: str) -> Reading:
    limitations = left_out(len(entries), DEVICES_MAX, f"{kind} devices")
    return Reading(fields, peripherals=entries[:DEVICES_MAX], limitations=limitations)


def fingerprint(identifier: str) -> str:
    """Return a hash of an identifier. Reports contain the hash instead of the identifier."""
    digest = hashlib.blake2s(identifier.strip().encode("utf-8", "replace"), person=b"venue-id")
    return digest.hexdigest()[:16]


def _hex(number: int | None) -> str | None:
    return None if number is None else f"{number:04x}"
