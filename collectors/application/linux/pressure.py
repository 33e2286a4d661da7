"""Reads how long tasks waited for processor, memory and disk (pressure stall information).

Source: Documentation/accounting/psi.rst of the Linux kernel.
"""

import re
from pathlib import Path
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.source import Fields, Origin, source
from collectors.shared.sysfs import text_or_empty

_FILES: Final = {
    "cpu.stalledFraction": "cpu",
    "memory.stalledFraction": "memory",
    "disk.stalledFraction": "io",
}
_SOME = re.compile(r"^some .*\bavg60=(\d{1,3}(?:\.\d{1,4})?)\b", re.MULTILINE)


def parse_pressure(text: str) -> float | None:
    """Return the share of the last minute in which at least one task was stalled, from 0 to 1."""
    match = _SOME.search(text)
    return None if match is None else min(1.0, round(float(match[1]) / 100, 4))


@source("pressure", Origin("/proc/pressure"), *_FILES)
def read_pressure(_: Deadline, root: Path) -> Fields:
    for key, name in _FILES.items():
        share = parse_pressure(text_or_empty(root / "proc/pressure" / name))
        origin = Origin(f"/proc/pressure/{name}")
        yield origin.fact(key, share, "this kernel does not measure how long tasks wait")
