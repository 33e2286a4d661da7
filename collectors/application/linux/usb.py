"""Reads the USB devices from sysfs.

Source: Documentation/ABI/testing/sysfs-bus-usb of the Linux kernel.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.readers.peripherals import USB_KEYS, UsbDevice, usb_reading
from collectors.application.source import Origin, Reading, source
from collectors.shared.sysfs import children, read_bytes, read_line

ORIGIN: Final = Origin("sysfs usb")

_DEVICE = re.compile(r"\d+-\d+(\.\d+)*")
_HEX = re.compile(r"[0-9A-Fa-f]{1,4}")
_ENTRIES_MAX: Final = 2048
_DESCRIPTORS_MAX: Final = 8
_DESCRIPTOR_MAX_BYTES: Final = 4096


@source("usb", ORIGIN, *USB_KEYS)
def read_usb(_: Deadline, root: Path) -> Reading:
    directory = root / "sys/bus/usb/devices"
    if not directory.is_dir():
        reason = "this machine has no USB"
        return Reading(ORIGIN.all_absent(USB_KEYS, "not-applicable", reason))
    entries = children(directory, _ENTRIES_MAX)
    devices = [read_device(entry, entries) for entry in entries if _DEVICE.fullmatch(entry.name)]
    return usb_reading(devices, ORIGIN)


def read_device(path: Path, entries: list[Path]) -> UsbDevice:
    """Read a device, such as ``1-1.2``, and its interfaces, such as ``1-1.2:1.0``."""
    parts = [entry for entry in entries if entry.name.startswith(f"{path.name}:")]
    codes = (_hex(path / "bDeviceClass"), *(_hex(part / "bInterfaceClass") for part in parts))
    return UsbDevice(
        local_id=path.name,
        vendor_id=_hex(path / "idVendor"),
        product_id=_hex(path / "idProduct"),
        vendor=read_line(path / "manufacturer"),
        product=read_line(path / "product"),
        classes=tuple(dict.fromkeys(code for code in codes if code)),
        drivers=tuple(dict.fromkeys(name for part in parts if (name := _driver(part)))),
        usage_pages=tuple(page for part in parts for page in _usage_pages(part)),
        speed_megabits=_speed(path),
        serial=read_line(path / "serial"),
    )


def parse_usage_page(descriptor: bytes) -> int | None:
    """Return the first usage page of a HID report descriptor (HID 1.11, section 6.2.2.7).

    Returns None if the descriptor does not begin with a usage page.
    """
    if descriptor[:1] == b"\x05" and len(descriptor) >= 2:  # one data byte
        return descriptor[1]
    if descriptor[:1] == b"\x06" and len(descriptor) >= 3:  # two data bytes
        return int.from_bytes(descriptor[1:3], "little")
    return None


def _usage_pages(interface: Path) -> Iterator[int]:
    # The directory is named BUS:VENDOR:PRODUCT.NUMBER, for example 0003:04B8:0202.0001.
    for file in sorted(interface.glob("*:*:*.*/report_descriptor"))[:_DESCRIPTORS_MAX]:
        with suppress(OSError):
            page = parse_usage_page(read_bytes(file, _DESCRIPTOR_MAX_BYTES))
            if page is not None:
                yield page


def _driver(interface: Path) -> str | None:
    try:
        return (interface / "driver").readlink().name
    except OSError:
        return None


def _hex(path: Path) -> int | None:
    text = read_line(path)
    return int(text, 16) if text is not None and _HEX.fullmatch(text) else None


def _speed(path: Path) -> float | None:
    text = read_line(path / "speed") or ""
    return float(text) if re.fullmatch(r"\d{1,6}(\.\d)?", text) else None
