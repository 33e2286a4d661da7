"""Lists the printers of the Windows spooler with EnumPrinters, level 2 (winspool.h)."""

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass

LOCAL = 0x2  # PRINTER_ENUM_LOCAL: no query to another print server
CONNECTIONS = 0x4  # PRINTER_ENUM_CONNECTIONS
_LEVEL = 2
_BUFFER_MAX = 8 * 1024 * 1024
_TRIES = 3
_INSUFFICIENT_BUFFER = 122


@dataclass(frozen=True, slots=True)
class SpoolerPrinter:
    """A printer from a PRINTER_INFO_2 structure.

    ``status`` has the bits PRINTER_STATUS_*, and ``attributes`` the bits PRINTER_ATTRIBUTE_*.
    """

    name: str
    port_name: str
    driver_name: str = ""
    status: int = 0
    attributes: int = 0


Spooler = Callable[[], tuple[SpoolerPrinter, ...]]
"""Returns the local printers, and the remote printers that this machine is connected to. Raises
OSError if the spooler is stopped."""


class _PrinterInfo2(ctypes.Structure):
    _fields_ = [
        ("server_name", ctypes.c_wchar_p),
        ("printer_name", ctypes.c_wchar_p),
        ("share_name", ctypes.c_wchar_p),
        ("port_name", ctypes.c_wchar_p),
        ("driver_name", ctypes.c_wchar_p),
        ("comment", ctypes.c_wchar_p),
        ("location", ctypes.c_wchar_p),
        ("dev_mode", ctypes.c_void_p),
        ("separator_file", ctypes.c_wchar_p),
        ("print_processor", ctypes.c_wchar_p),
        ("data_type", ctypes.c_wchar_p),
        ("parameters", ctypes.c_wchar_p),
        ("security_descriptor", ctypes.c_void_p),
        ("attributes", ctypes.c_uint32),
        ("priority", ctypes.c_uint32),
        ("default_priority", ctypes.c_uint32),
        ("start_time", ctypes.c_uint32),
        ("until_time", ctypes.c_uint32),
        ("status", ctypes.c_uint32),
        ("jobs", ctypes.c_uint32),
        ("average_ppm", ctypes.c_uint32),
    ]


def read_spooler(
    kinds: int = LOCAL | CONNECTIONS, max_bytes: int = _BUFFER_MAX
) -> tuple[SpoolerPrinter, ...]:
    """Return the printers of this machine's spooler, using winspool.drv.

    ``kinds`` combines `LOCAL` and `CONNECTIONS`, and selects the printers to list. Raises OSError,
    also if their list is larger than ``max_bytes``.
    """
    if sys.platform == "win32":
        library = ctypes.WinDLL("winspool.drv", use_last_error=True)
        return list_printers(
            library.EnumPrintersW,
            lambda: ctypes.WinError(ctypes.get_last_error()),
            kinds,
            max_bytes,
        )
    raise OSError("no Windows spooler on this system")


def list_printers(
    enumerate_printers: Callable[..., int],
    last_error: Callable[[], OSError],
    kinds: int,
    max_bytes: int,
) -> tuple[SpoolerPrinter, ...]:
    """Do what `read_spooler` describes, with the function EnumPrintersW and its last error."""
    buffer: ctypes.Array[ctypes.c_char] | None = None
    size, needed, count = 0, ctypes.c_uint32(), ctypes.c_uint32()
    # The first call returns the size of the list. If a printer is added before the next call, the
    # buffer is too small again.
    for _ in range(_TRIES):
        sizes = ctypes.byref(needed), ctypes.byref(count)
        if enumerate_printers(kinds, None, _LEVEL, buffer, size, *sizes):
            return read_printer_info(buffer, count.value)
        error = last_error()
        is_too_small = getattr(error, "winerror", None) == _INSUFFICIENT_BUFFER
        if not is_too_small or needed.value > max_bytes:
            raise error
        size = needed.value
        buffer = ctypes.create_string_buffer(size)
    raise OSError("the list of printers keeps growing")


def read_printer_info(
    buffer: "ctypes.Array[ctypes.c_char] | None", count: int
) -> tuple[SpoolerPrinter, ...]:
    """Read the array of PRINTER_INFO_2 at the start of the buffer."""
    if buffer is None or count == 0:
        return ()
    items = ctypes.cast(buffer, ctypes.POINTER(_PrinterInfo2 * count)).contents
    return tuple(
        SpoolerPrinter(
            name=item.printer_name or "",
            port_name=item.port_name or "",
            driver_name=item.driver_name or "",
            status=item.status,
            attributes=item.attributes,
        )
        for item in items
    )
