"""Reads peripherals and print queues from the output of the PowerShell script DEVICES."""

import re
from collections.abc import Sequence
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.foreign_json import Object, flag, number, text
from collectors.application.readers import peripherals
from collectors.application.readers.peripherals import BluetoothDevice, UsbDevice
from collectors.application.readers.print_queues import Queue, queue_reading, read_print_queues
from collectors.application.source import Reading, source
from collectors.application.windows import powershell
from collectors.application.windows.script import (
    CIM,
    SCRIPT_S,
    Section,
    Sections,
    field_group,
    keys_of,
    read_groups,
    read_sections,
    section,
)
from collectors.shared.print_jobs import QUEUE_NAME_MAX, Job
from collectors.shared.text import clean_text

_HARDWARE = re.compile(r"VID_([0-9A-F]{4})&PID_([0-9A-F]{4})(?:&(MI_[0-9A-F]{2}))?", re.IGNORECASE)
_CLASS = re.compile(r"USB\\Class_([0-9A-F]{2})\b", re.IGNORECASE)
_STATES: Final = {3: "idle", 4: "processing", 5: "processing", 6: "stopped", 7: "offline"}
"""States of a queue by Win32_Printer.PrinterStatus."""
_ERRORS: Final = {
    3: "low-paper", 4: "no-paper", 5: "low-toner", 6: "no-toner", 7: "door-open", 8: "jammed",
    9: "offline", 10: "service-requested", 11: "output-bin-full",
}  # fmt: skip
"""Problems of a printer by Win32_Printer.DetectedErrorState."""
_QUEUE_PAUSED: Final = 0x0001
"""The bit PRINTER_STATUS_PAUSED of Win32_Printer.PrinterState. PrinterStatus has no value for a
paused queue."""
_JOB_PAUSED: Final = 0x0001
"""The bit "paused" of Win32_PrintJob.StatusMask."""
_JOB_STOPPED: Final = 0x0002 | 0x0020 | 0x0040 | 0x0200 | 0x0400
"""Bits of Win32_PrintJob.StatusMask: error, offline, paper out, blocked, user intervention."""


@field_group(*peripherals.USB_KEYS)
def usb_reading(sections: Sections) -> Reading:
    return peripherals.usb_reading(parse_usb(section(sections, "usb")), CIM)


def parse_usb(answer: Section) -> tuple[UsbDevice, ...]:
    """Return the USB devices.

    Windows lists each interface of a composite device as a row of its own. A row of an interface
    has only the vendor and product id of its device. So if several devices have the same vendor and
    product id, each device gets all interfaces with this id. This is correct, because devices with
    the same id have the same interfaces.
    """
    parents: dict[str, list[Object]] = {}
    parts: dict[str, list[Object]] = {}
    for row in answer.rows:
        match = _HARDWARE.match(text(row, "Hardware") or "")
        if match:
            usb_id = f"{match[1]}-{match[2]}".lower()
            (parts if match[3] else parents).setdefault(usb_id, []).append(row)
    return tuple(
        _usb_device(usb_id, position, row, parts.get(usb_id, []))
        for usb_id in {**parents, **parts}
        for position, row in enumerate(parents.get(usb_id, [{}]), start=1)
    )


@field_group(*peripherals.BLUETOOTH_KEYS)
def bluetooth_reading(sections: Sections) -> Reading:
    rows = section(sections, "bluetooth").rows
    addresses = dict.fromkeys(address for row in rows if (address := text(row, "Address")))
    # Windows does not report the kind of a device, so any of them may be a user's phone.
    devices = [BluetoothDevice(address=address, is_personal=True) for address in addresses]
    radios = sections.get("radios", Section()).rows
    is_on = any(text(radio, "Status") == "OK" for radio in radios) if radios else None
    key, reason = "peripherals.bluetoothPowered", "no Bluetooth radio was found"
    powered = CIM.fact(key, is_on, reason, "not-applicable")
    return peripherals.bluetooth_reading(devices, powered, CIM)


@field_group(*read_print_queues.keys)
def queues_reading(sections: Sections) -> Reading:
    return queue_reading(
        parse_queues(section(sections, "printers")), parse_jobs(section(sections, "jobs"))
    )


def parse_queues(answer: Section) -> tuple[Queue, ...]:
    return tuple(_queue(row, name) for row in answer.rows if (name := text(row, "Name")))


def parse_jobs(answer: Section) -> tuple[Job, ...]:
    return tuple(
        Job(
            queue=clean_text(text(row, "Queue") or "", QUEUE_NAME_MAX),
            is_held=bool((number(row, "StatusMask") or 0) & _JOB_PAUSED),
            is_stopped=bool((number(row, "StatusMask") or 0) & _JOB_STOPPED),
            age_s=max(0, age) if (age := number(row, "AgeSeconds")) is not None else None,
        )
        for row in answer.rows
    )


GROUPS: Final = (queues_reading, usb_reading, bluetooth_reading)


@source("devices", CIM, *keys_of(GROUPS), limit_s=SCRIPT_S)
def read_devices(deadline: Deadline) -> Reading:
    return read_groups(GROUPS, read_sections(powershell.DEVICES, deadline))


def _usb_device(usb_id: str, position: int, parent: Object, parts: Sequence[Object]) -> UsbDevice:
    """Return a USB device with its interfaces.

    Args:
        usb_id: The vendor and product id, such as ``04b8-0e15``.
        position: The position of the device among those with the same ``usb_id``, from 1.
        parent: The row of the device.
        parts: The rows of its interfaces.
    """
    vendor_id, product_id = (int(part, 16) for part in usb_id.split("-"))
    instance_hash = text(parent, "InstanceHash")
    suffix = instance_hash or (str(position) if position > 1 else None)
    rows = (parent, *parts)
    return UsbDevice(
        local_id=f"{usb_id}-{suffix}" if suffix else usb_id,
        vendor_id=vendor_id,
        product_id=product_id,
        vendor=next((maker for row in rows if (maker := text(row, "Manufacturer"))), None),
        product=next((name for row in rows if (name := text(row, "Name"))), None),
        classes=tuple(dict.fromkeys(code for row in rows for code in _classes(row))),
        drivers=tuple(dict.fromkeys(name for row in rows if (name := text(row, "Service")))),
        serial=instance_hash,
    )


def _classes(row: Object) -> list[int]:
    ids = row.get("CompatibleID")
    compatible_ids = (
        [entry for entry in ids if isinstance(entry, str)] if isinstance(ids, list) else []
    )
    return [int(match[1], 16) for entry in compatible_ids if (match := _CLASS.match(entry))]


def _queue(row: Object, name: str) -> Queue:
    error = _ERRORS.get(number(row, "DetectedErrorState") or 0)
    state = _STATES.get(number(row, "PrinterStatus") or 0, "unknown")
    is_paused = bool((number(row, "PrinterState") or 0) & _QUEUE_PAUSED)
    if flag(row, "WorkOffline") is True:
        state = "offline"
    elif is_paused:
        state = "stopped"
    reasons = ("paused" if is_paused else None, error)
    return Queue(
        name=clean_text(name, QUEUE_NAME_MAX),
        state=state,
        accepting=None,
        reasons=tuple(reason for reason in reasons if reason),
    )
