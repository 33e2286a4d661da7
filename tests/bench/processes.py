"""The cost of a process, as the kernel accounts for it: proc(5)."""

import re
import time
from dataclasses import dataclass
from pathlib import Path

MIB = 1024.0


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a process and all its children. ``wakeups`` are voluntary context switches so
    far.
    """

    pss_mib: float
    rss_mib: float
    cpu_s: float
    wakeups: int
    processes: int


def cost_of(pid: int) -> Cost:
    """Read the cost of ``pid`` and its children. Raises OSError if it has ended."""
    family = family_of(pid)
    rollups = [Path(f"/proc/{each}/smaps_rollup").read_text() for each in family]
    return Cost(
        pss_mib=sum(_kib(text, "Pss") for text in rollups) / MIB,
        rss_mib=sum(_kib(text, "Rss") for text in rollups) / MIB,
        cpu_s=sum(_cpu_s(each) for each in family),
        wakeups=sum(_wakeups(each) for each in family),
        processes=len(family),
    )


def resident_kib(pid: int) -> int:
    """Read the resident memory of ``pid`` alone from its page tables, which are exact."""
    return _kib(Path(f"/proc/{pid}/smaps_rollup").read_text(), "Rss")


def peak_kib(pid: int) -> int:
    """Read the most that ``pid`` alone has ever had resident."""
    return _kib(Path(f"/proc/{pid}/status").read_text(), "VmHWM")


def family_of(pid: int) -> tuple[int, ...]:
    """Return a process and all its descendants."""
    children = {
        int(word)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for word in (task / "children").read_text().split()
    }
    return (pid, *(each for child in sorted(children) for each in family_of(child)))


def _kib(rollup: str, name: str) -> int:
    match = re.search(rf"^{name}:\s+(\d+) kB", rollup, re.MULTILINE)
    return int(match[1]) if match else 0


def _cpu_s(pid: int) -> float:
    """Read the CPU clock of another process, in ns rather than in ticks: clock_getcpuclockid(3),
    whose encoding is ``~pid << 3 | CPUCLOCK_SCHED`` on Linux."""
    return time.clock_gettime(~pid << 3 | 2)


def _wakeups(pid: int) -> int:
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        match = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(), re.M)
        total += int(match[1]) if match else 0
    return total
