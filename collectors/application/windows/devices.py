"""Turns what the devices script tells into peripherals and print queues."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from collectors.application import keys
from collectors.application.foreign_json import Object, flag, number, text
from collectors.application.readers.peripherals import (
    USB_MAX,
    BluetoothDevice,
    UsbDevice,
    bluetooth_fields,
    listed,
    usb_fields,
)
from collectors.application.readers.print_queues import Job, Queue, queue_reading
from collectors.application.source import Reading, Unreadable, all_absent, available, either
from collectors.application.windows.script import SOURCE, Section, Sections, section
from collectors.shared.text import clean_text

FormReading = Callable[[Sections], Reading]

_HARDWARE = re.compile(r"VID_([0-9A-F]{4})&PID_([0-9A-F]{4})(?:&(MI_[0-9A-F]{2}))?", re.IGNORECASE)
_CLASS = re.compile(r"USB\\Class_([0-9A-F]{2})\b", re.IGNORECASE)
_STATES: Final = {3: "idle", 4: "processing", 5: "processing", 6: "stopped", 7: "offline"}
"""Win32_Printer.PrinterStatus."""
_ERRORS: Final = {
    3: "low-paper", 4: "no-paper", 5: "low-toner", 6: "no-toner", 7: "door-open", 8: "jammed",
    9: "offline", 10: "service-requested", 11: "output-bin-full",
}  # fmt: skip
"""Win32_Printer.DetectedErrorState."""
_PAUSED: Final = 0x0001
_BROKEN: Final = 0x0002 | 0x0020 | 0x0040 | 0x0200 | 0x0400
"""Win32_PrintJob.StatusMask: error, offline, paper out, blocked, user intervention."""


def usb_reading(sections: Sections) -> Reading:
    devices = parse_usb(section(sections, "usb"))
    shown, cut = listed(usb_fields(device, SOURCE) for device in devices)
    return Reading(
        fields=(available(keys.USB_KEYS[0], SOURCE, len(devices)),),
        peripherals=shown,
        limitations=(f"{cut} USB devices beyond {USB_MAX} are not listed",) if cut else (),
        truncated=cut > 0,
    )


def parse_usb(told: Section) -> tuple[UsbDevice, ...]:
    """The devices among the entries; the interfaces of a composite device are joined to it."""
    whole: dict[str, list[Object]] = {}
    for row in told.rows:
        match = _HARDWARE.match(text(row, "Hardware") or "")
        if match:
            place = f"{match[1]}-{match[2]}".lower()
            whole.setdefault(place, []).append(row)
    return tuple(_usb_device(place, rows) for place, rows in whole.items())


def bluetooth_reading(sections: Sections) -> Reading:
    rows = section(sections, "bluetooth").rows
    addresses = {text(row, "Address"): row for row in rows if text(row, "Address")}
    devices = [
        # Windows does not tell the kind here, so each may be somebody's telephone.
        BluetoothDevice(address=str(address), is_personal=True)
        for address in addresses
    ]
    shown, cut = listed(bluetooth_fields(device, SOURCE) for device in devices)
    radios = sections.get("radios", Section()).rows
    powered = any(text(radio, "Status") == "OK" for radio in radios)
    return Reading(
        fields=(
            available(keys.BLUETOOTH_KEYS[0], SOURCE, len(devices)),
            either(
                keys.BLUETOOTH_KEYS[1],
                SOURCE,
                powered if radios else None,
                "no Bluetooth radio was found",
                "not-applicable",
            ),
        ),
        peripherals=shown,
        limitations=(f"{cut} Bluetooth devices beyond {USB_MAX} are not listed",) if cut else (),
        truncated=cut > 0,
    )


def queues_reading(sections: Sections) -> Reading:
    return queue_reading(
        parse_queues(section(sections, "printers")), parse_jobs(section(sections, "jobs"))
    )


def parse_queues(told: Section) -> tuple[Queue, ...]:
    return tuple(_queue(row, name) for row in told.rows if (name := text(row, "Name")))


def parse_jobs(told: Section) -> tuple[Job, ...]:
    return tuple(
        Job(
            queue=clean_text(text(row, "Queue") or "", 128),
            held=bool((number(row, "StatusMask") or 0) & _PAUSED),
            stopped=bool((number(row, "StatusMask") or 0) & _BROKEN),
            age_s=max(0, age) if (age := number(row, "AgeSeconds")) is not None else None,
        )
        for row in told.rows
    )


def devices_reading(sections: Sections) -> Reading:
    """Everything the devices script told; a refused section costs its own keys only."""
    readings = [
        _attempt(keys.QUEUE_KEYS, queues_reading, sections),
        _attempt(keys.USB_KEYS, usb_reading, sections),
        _attempt(keys.BLUETOOTH_KEYS, bluetooth_reading, sections),
    ]
    return Reading(
        fields=tuple(field for reading in readings for field in reading.fields),
        peripherals=tuple(entry for reading in readings for entry in reading.peripherals),
        limitations=tuple(text for reading in readings for text in reading.limitations),
        truncated=any(reading.truncated for reading in readings),
    )


def _usb_device(place: str, rows: Sequence[Object]) -> UsbDevice:
    match = _HARDWARE.match(text(rows[0], "Hardware") or "")
    marks = [mark for row in rows if (mark := text(row, "Mark"))]
    return UsbDevice(
        place=f"{place}-{marks[0]}" if marks else place,
        vendor_id=int(match[1], 16) if match else None,
        product_id=int(match[2], 16) if match else None,
        vendor=next((maker for row in rows if (maker := text(row, "Manufacturer"))), None),
        product=next((name for row in rows if (name := text(row, "Name"))), None),
        classes=tuple(dict.fromkeys(code for row in rows for code in _classes(row))),
        drivers=tuple(dict.fromkeys(name for row in rows if (name := text(row, "Service")))),
        serial=marks[0] if marks else None,
    )


def _classes(row: Object) -> list[int]:
    ids = row.get("CompatibleID")
    written = [entry for entry in ids if isinstance(entry, str)] if isinstance(ids, list) else []
    return [int(match[1], 16) for entry in written if (match := _CLASS.match(entry))]


def _queue(row: Object, name: str) -> Queue:
    error = _ERRORS.get(number(row, "DetectedErrorState") or 0)
    state = _STATES.get(number(row, "PrinterStatus") or 0, "unknown")
    offline = flag(row, "WorkOffline") is True
    return Queue(
        name=clean_text(name, 128),
        state="offline" if offline else state,
        accepting=None,
        reasons=(error,) if error else (),
    )


def _attempt(owed: tuple[str, ...], form: FormReading, sections: Sections) -> Reading:
    try:
        return form(sections)
    except Unreadable as error:
        return Reading(all_absent(owed, SOURCE, error.status, error.reason))
