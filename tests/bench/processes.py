"""Reads the memory and the wake-ups of a process from /proc, see proc(5), and its processor time
from its CPU clock.
"""

import re
import time
from dataclasses import dataclass
from pathlib import Path

KIB_PER_MIB = 1024.0


@dataclass(frozen=True, slots=True)
class Cost:
    """The resource use of a process and all its descendants. ``wakeups`` counts their voluntary
    context switches since they started.
    """

    pss_mib: float
    rss_mib: float
    cpu_s: float
    wakeups: int
    processes: int


def cost_of(pid: int) -> Cost:
    """Read the resource use of ``pid`` and its descendants. Raises OSError if one has ended."""
    family = family_of(pid)
    memory = [Path(f"/proc/{each}/smaps_rollup").read_text() for each in family]
    return Cost(
        pss_mib=sum(_kib(text, "Pss") for text in memory) / KIB_PER_MIB,
        rss_mib=sum(_kib(text, "Rss") for text in memory) / KIB_PER_MIB,
        cpu_s=sum(_cpu_s(each) for each in family),
        wakeups=sum(_wakeups(each) for each in family),
        processes=len(family),
    )


def resident_kib(pid: int) -> int:
    """Read the exact resident memory of ``pid``, without its descendants, from its page tables."""
    return _kib(Path(f"/proc/{pid}/smaps_rollup").read_text(), "Rss")


def peak_kib(pid: int) -> int:
    """Read the peak resident memory of ``pid``, without its descendants."""
    return _kib(Path(f"/proc/{pid}/status").read_text(), "VmHWM")


def family_of(pid: int) -> tuple[int, ...]:
    """Return a process and all its descendants."""
    children = {
        int(word)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for word in (task / "children").read_text().split()
    }
    return (pid, *(each for child in sorted(children) for each in family_of(child)))


def _kib(text: str, name: str) -> int:
    """Return a value of the text of ``smaps_rollup`` or ``status``."""
    match = re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)
    return int(match[1]) if match else 0


def _cpu_s(pid: int) -> float:
    """Read the CPU clock of another process, which is more precise than the ticks in /proc. On
    Linux its clock id is ``~pid << 3 | CPUCLOCK_SCHED``, see clock_getcpuclockid(3)."""
    return time.clock_gettime(~pid << 3 | 2)


def _wakeups(pid: int) -> int:
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        match = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(), re.M)
        total += int(match[1]) if match else 0
    return total
