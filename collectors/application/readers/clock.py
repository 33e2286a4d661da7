"""Reads from the kernel whether the clock is synchronised, and its offset.

Source: adjtimex(2) on Linux and ntp_adjtime(2) on macOS. Their structs begin with the same fields.
Every user may call these functions to read the clock, but the systemd sandbox of the agent forbids
the call. In the sandbox, the file that systemd-timesyncd creates after a synchronisation is checked
instead. Some programs set the clock, but do not report to the kernel that it is synchronised. If
such a program runs, it is unknown whether the clock is synchronised.
"""

import ctypes
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.source import Fields, Origin, source, status_of
from collectors.shared.sysfs import children, read_line, text_or_empty

ADJTIMEX: Final = Origin("adjtimex")

_STA_UNSYNC: Final = 0x0040
_STA_NANO: Final = 0x2000
_TIME_ERROR: Final = 5

_SETTERS: Final = frozenset({"vmtoolsd", "VBoxService", "prltoolsd", "htpdate"})
"""Programs that set the clock, but do not report to the kernel that it is synchronised: guest
tools, which set the clock of a virtual machine to that of its host, and htpdate(8)."""
_CONTAINER_MARKS: Final = ("run/systemd/container", "run/.containerenv", ".dockerenv")
"""Files that exist only in containers. The clock of a container is set by a program on its host,
which the container cannot see."""
_HYPER_V: Final = "9527e630-d0ae-497b-adce-e80ab0175caf"
"""The class of the device by which Hyper-V sets the clock of a virtual machine (hyperv.h)."""
_CHRONY_SETTINGS: Final = ("etc/chrony/chrony.conf", "etc/chrony.conf")
_OPEN_NTPD_SOCKET: Final = "run/ntpd.sock"
_RTCSYNC = re.compile(r"^\s*rtcsync\b", re.MULTILINE)
"""Without this directive, chronyd does not report to the kernel that the clock is synchronised
(chrony.conf(5))."""


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


def adjtimex(call: str = "adjtimex") -> tuple[int, Timex]:
    """Call the C function with the name ``call``.

    Returns its result, which is the state of the clock, and the struct that it filled. Raises
    OSError.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    figures = Timex()
    state = getattr(libc, call)(ctypes.byref(figures))
    if state < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return state, figures


@source("clock", ADJTIMEX, "os.clockSynchronised", "os.clockOffsetMilliseconds")
def read_clock(
    _: Deadline,
    root: Path,
    query: Callable[[], tuple[int, Timex]] = adjtimex,
    system_setter: str | None = None,
) -> Fields:
    """Read the clock.

    ``system_setter`` is the system's own program that sets the clock, if this program does not
    report to the kernel that the clock is synchronised.
    """
    try:
        state, figures = query()
    except (OSError, AttributeError) as error:
        status, reason = status_of(error)
        mark = root / "run/systemd/timesync/synchronized"
        if not mark.exists():
            return ADJTIMEX.all_absent(read_clock.keys, status, reason)
        return (
            Origin("systemd-timesyncd").available("os.clockSynchronised", True),
            ADJTIMEX.absent("os.clockOffsetMilliseconds", status, reason),
        )
    is_synchronised = state != _TIME_ERROR and not figures.status & _STA_UNSYNC
    setter = None if is_synchronised else system_setter or clock_setter(root)
    if setter is not None:
        reason = (
            f"{setter} sets the clock, but does not report to the kernel that it is synchronised"
        )
        return ADJTIMEX.all_absent(read_clock.keys, "unsupported", reason)
    scale = 1_000_000 if figures.status & _STA_NANO else 1_000
    offset = round(figures.offset / scale, 3) if is_synchronised else None
    reason = "nothing synchronises this clock, so no offset is known"
    return (
        ADJTIMEX.available("os.clockSynchronised", is_synchronised),
        ADJTIMEX.fact("os.clockOffsetMilliseconds", offset, reason, "not-applicable"),
    )


def clock_setter(root: Path) -> str | None:
    """Return the name of a program or host that sets the clock, but not the kernel's clock status.

    Returns None if there is no such program or host.
    """
    programs = {read_line(path) for path in (root / "proc").glob("[0-9]*/comm")}
    if setters := programs & _SETTERS:
        return min(filter(None, setters))
    if "chronyd" in programs and not any(
        _RTCSYNC.search(text_or_empty(root / path)) for path in _CHRONY_SETTINGS
    ):
        return "chronyd"
    if (root / _OPEN_NTPD_SOCKET).exists():
        return "OpenNTPD"
    if any((root / mark).exists() for mark in _CONTAINER_MARKS):
        return "the container's host"
    devices = children(root / "sys/bus/vmbus/devices")
    is_hyper_v = any(_HYPER_V in (read_line(device / "class_id") or "") for device in devices)
    return "Hyper-V" if is_hyper_v else None
