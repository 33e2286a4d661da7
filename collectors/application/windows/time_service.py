"""Reads whether the clock of Windows is synchronised, from `w32tm /query /status /verbose`.

The labels of the output are in the language of the system, so lines are recognised by their
position and form. The first line has the leap indicator: 3 means not synchronised (RFC 5905, figure
9). The third value in seconds, after root delay and root dispersion, is the offset. If the machine
uses its own clock as time source, the clock counts as not synchronised, whatever the leap indicator
is. The output names this source by the same words in every language.
"""

import re
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.source import Origin, Reading, Unreadable, source
from collectors.shared.run_command import run_command
from collectors.shared.text import decode

ORIGIN: Final = Origin("w32tm")
_LEAP = re.compile(r"[^:\n]{1,80}:\s*([0-3])\s*\(")
_SECONDS = re.compile(r"^[^:\n]{1,80}:\s*([-+]?\d{1,9}\.\d{1,9})s\s*$", re.MULTILINE)
_UNSYNCHRONISED: Final = "3"
_OWN_CLOCK = re.compile(r"\bLOCL\b|\b0x4C4F434C\b|Local CMOS Clock|Free-running System Clock")
_OFFSET_INDEX: Final = 2
_ACCESS_DENIED: Final = b"0x80070005"
"""E_ACCESSDENIED, which w32tm prints in every language."""


@source("clock", ORIGIN, "os.clockSynchronised", "os.clockOffsetMilliseconds", limit_s=4.0)
def read_clock(deadline: Deadline) -> Reading:
    output = run_command(("w32tm", "/query", "/status", "/verbose"), deadline.at)
    if output.exit_code != 0:
        if _ACCESS_DENIED in output.data + output.error:
            raise Unreadable("permission-denied", "only administrators may query the time service")
        raise Unreadable("not-applicable", "the Windows time service does not run")
    return clock_reading(decode(output.data))


def clock_reading(status: str) -> Reading:
    """Parse the output of w32tm. Raises ValueError if its form is unknown."""
    leap = _LEAP.match(status.lstrip("\ufeff\r\n "))
    if leap is None:
        raise ValueError("the output of w32tm has an unknown form")
    is_synchronised = leap[1] != _UNSYNCHRONISED and not _OWN_CLOCK.search(status)
    seconds = _SECONDS.findall(status.replace("\r\n", "\n"))
    has_offset = is_synchronised and len(seconds) > _OFFSET_INDEX
    offset = round(float(seconds[_OFFSET_INDEX]) * 1000, 3) if has_offset else None
    reason = "the time service does not report it"
    fields = (
        ORIGIN.available("os.clockSynchronised", is_synchronised),
        ORIGIN.fact("os.clockOffsetMilliseconds", offset, reason),
    )
    return Reading(fields)
