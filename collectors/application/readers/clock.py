"""Reads from the kernel whether the clock is synchronised, and its offset.

Source: adjtimex(2) on Linux and ntp_adjtime(2) on macOS. Their structs begin with the same fields.
Every user may call these functions to read the clock, but the systemd sandbox of the agent forbids
the call. In the sandbox, the file that systemd-timesyncd creates after a synchronisation is checked
instead.
"""

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.source import (
    Fields,
    absent,
    all_absent,
    available,
    either,
    source,
    status_of,
)

ADJTIMEX: Final = "adjtimex"

_STA_UNSYNC: Final = 0x0040
_STA_NANO: Final = 0x2000
_TIME_ERROR: Final = 5


class Timex(ctypes.Structure):
    """The C struct timex. ``tail`` is space for the fields that the kernel writes and we ignore."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("tail", ctypes.c_char * 256),
    )


def adjtimex(call: str = ADJTIMEX) -> tuple[int, Timex]:
    """Return the clock state that the call returned, and the struct it filled. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    figures = Timex()
    state = getattr(libc, call)(ctypes.byref(figures))
    if state < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return state, figures


@source("clock", ADJTIMEX, "os.clockSynchronised", "os.clockOffsetMilliseconds")
def read_clock(_: Deadline, root: Path, ask: Callable[[], tuple[int, Timex]] = adjtimex) -> Fields:
    try:
        state, figures = ask()
    except (OSError, AttributeError) as error:
        status, reason = status_of(error)
        mark = root / "run/systemd/timesync/synchronized"
        if not mark.exists():
            return all_absent(read_clock.keys, ADJTIMEX, status, reason)
        return (
            available("os.clockSynchronised", "systemd-timesyncd", True),
            absent("os.clockOffsetMilliseconds", ADJTIMEX, status, reason),
        )
    is_synchronised = state != _TIME_ERROR and not figures.status & _STA_UNSYNC
    scale = 1_000_000 if figures.status & _STA_NANO else 1_000
    offset = round(figures.offset / scale, 3) if is_synchronised else None
    reason = "nothing synchronises this clock, so no offset is known"
    return (
        available("os.clockSynchronised", ADJTIMEX, is_synchronised),
        either("os.clockOffsetMilliseconds", ADJTIMEX, offset, reason, "not-applicable"),
    )
