"""Tests the calls of EnumPrinters, with a fake of this function."""

import ctypes
from typing import Any

import pytest

from collectors.shared.host.spooler_windows import (
    LOCAL,
    SpoolerPrinter,
    _PrinterInfo2,
    list_printers,
)

INSUFFICIENT_BUFFER = 122
RPC_UNAVAILABLE = 1722
ENTRY_BYTES = ctypes.sizeof(_PrinterInfo2)


class WindowsError(OSError):
    """An OSError with the error code of Windows."""

    def __init__(self, winerror: int) -> None:
        super().__init__(f"error {winerror}")
        self.winerror = winerror


class FakeSpooler:
    """A spooler. ``lists`` has the names of its printers at each call."""

    def __init__(self, *lists: tuple[str, ...], error: int = INSUFFICIENT_BUFFER) -> None:
        self.lists = list(lists)
        self.error = error
        self._entries: ctypes.Array[_PrinterInfo2] | None = None

    def enumerate_printers(self, *arguments: Any) -> int:
        kinds, server, level, buffer, size, needed, count = arguments
        assert (kinds, server, level) == (LOCAL, None, 2)
        names = self.lists.pop(0)
        self._entries = entries = (_PrinterInfo2 * len(names))()  # keeps the texts in memory
        for entry, name in zip(entries, names, strict=True):
            entry.printer_name = name
        needed._obj.value, count._obj.value = ctypes.sizeof(entries), len(names)
        if size < ctypes.sizeof(entries):
            return 0
        ctypes.memmove(buffer, entries, ctypes.sizeof(entries))
        return 1

    def list(self, max_bytes: int = 10 * ENTRY_BYTES) -> tuple[SpoolerPrinter, ...]:
        return list_printers(
            self.enumerate_printers, lambda: WindowsError(self.error), LOCAL, max_bytes
        )


def test_the_second_call_has_a_buffer_for_the_whole_list() -> None:
    spooler = FakeSpooler(*[("Receipts", "Kitchen")] * 2)
    assert [printer.name for printer in spooler.list()] == ["Receipts", "Kitchen"]
    assert spooler.lists == []


def test_an_empty_list_needs_one_call() -> None:
    assert FakeSpooler(()).list() == ()


def test_a_list_that_grows_between_two_calls_is_read() -> None:
    spooler = FakeSpooler(("Bar",), ("Bar", "Kitchen"), ("Bar", "Kitchen"))
    assert [printer.name for printer in spooler.list()] == ["Bar", "Kitchen"]


def test_a_list_that_keeps_growing_is_an_error() -> None:
    spooler = FakeSpooler(("1",), ("1", "2"), ("1", "2", "3"))
    with pytest.raises(OSError, match="keeps growing"):
        spooler.list()


def test_a_list_that_is_too_large_is_not_read() -> None:
    spooler = FakeSpooler(("Bar", "Kitchen"))
    with pytest.raises(WindowsError, match="error 122"):
        spooler.list(max_bytes=2 * ENTRY_BYTES - 1)


def test_a_stopped_spooler_is_an_error() -> None:
    spooler = FakeSpooler(("Bar",), error=RPC_UNAVAILABLE)
    with pytest.raises(WindowsError, match="error 1722"):
        spooler.list()
