"""Reads the state of the local print queues from the spooler of Windows (EnumPrinters, level 2)."""

import ctypes
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from agent.rules.connectivity.local_faults import LocalState
from agent.wire.controls import without_controls

QUEUES_MAX: Final = 32
NAME_MAX: Final = 127
_LOCAL: Final = 0x2  # PRINTER_ENUM_LOCAL: no query to another print server
_LEVEL: Final = 2
_BYTES_MAX: Final = 1 << 20  # a larger list of queues is not read
_FAULTS: Final = {
    0x00000001: "paused",
    0x00000002: "error",
    0x00000008: "paper jam",
    0x00000010: "out of paper",
    0x00000080: "offline",
    0x00001000: "not available",
    0x00040000: "out of toner",
    0x00100000: "needs an operator",
    0x00400000: "door open",
}
"""The bits of PRINTER_INFO_2.Status that stop a queue."""
_WORK_OFFLINE: Final = 0x400
"""The bit PRINTER_ATTRIBUTE_WORK_OFFLINE of PRINTER_INFO_2.Attributes."""


class PrinterInfo(ctypes.Structure):
    """PRINTER_INFO_2 (winspool.h)."""

    _fields_ = (
        ("server_name", ctypes.c_wchar_p),
        ("printer_name", ctypes.c_wchar_p),
        *((name, ctypes.c_void_p) for name in (
            "share_name", "port_name", "driver_name", "comment", "location", "dev_mode",
            "separator_file", "print_processor", "datatype", "parameters", "security",
        )),
        *((name, ctypes.c_uint32) for name in (
            "attributes", "priority", "default_priority", "start_time", "until_time", "status",
            "jobs", "average_ppm",
        )),
    )  # fmt: skip


def read_queues() -> dict[str, LocalState] | None:
    """Return the state of each queue by name; None if the spooler does not answer."""
    if sys.platform == "win32":
        return _read(ctypes.WinDLL("winspool.drv").EnumPrintersW)
    return None


def _read(enumerate_printers: Callable[..., int]) -> dict[str, LocalState] | None:
    needed, count = ctypes.c_uint32(), ctypes.c_uint32()
    sizes = ctypes.byref(needed), ctypes.byref(count)
    if enumerate_printers(_LOCAL, None, _LEVEL, None, 0, *sizes):
        return {}  # there are no printers
    if not 0 < needed.value <= _BYTES_MAX:
        return None
    buffer = ctypes.create_string_buffer(needed.value)
    if not enumerate_printers(_LOCAL, None, _LEVEL, buffer, needed.value, *sizes):
        return None
    entries = ctypes.cast(buffer, ctypes.POINTER(PrinterInfo))
    return dict(_states(entries[number] for number in range(min(count.value, QUEUES_MAX))))


def _states(entries: Iterator[Any]) -> Iterator[tuple[str, LocalState]]:
    for each in entries:
        name = " ".join(without_controls(each.printer_name or "").split())[:NAME_MAX]
        if name:
            yield name, LocalState(fault_of(each.status, each.attributes))


def fault_of(status: int, attributes: int) -> str | None:
    """Return why a queue does not print; None if it can print."""
    faults = [text for bit, text in _FAULTS.items() if status & bit]
    if attributes & _WORK_OFFLINE and "offline" not in faults:
        faults.append("offline")
    return f"stopped ({', '.join(faults)})" if faults else None
