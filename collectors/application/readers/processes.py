"""Reads whether the venue's own programs run, since when, and how much CPU and memory they use.

A process is recognised by the name of its program only. Command lines and owners are never
collected.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import psutil

from collectors.application.deadline import Deadline
from collectors.application.source import CONFIGURATION, Fields, Origin, Reading, left_out, source
from collectors.contract import FieldStatus
from collectors.shared.text import clean_text

SERVICE_MANAGER: Final = Origin("service manager")
ORIGIN: Final = Origin("process table")
WATCHED_MAX: Final = 32
WINDOW_S: Final = 1.0

ASPECTS: Final = ("startedAt", "cpuFraction", "memoryBytes", "restartsSinceBoot")


@dataclass(frozen=True, slots=True)
class Sample:
    """A process at one time. ``created`` is in seconds since 1970."""

    pid: int
    name: str
    created: float
    cpu_s: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Restarts:
    """How often a program was restarted since the machine started, or why that is unknown."""

    count: int | None = None
    status: FieldStatus = "unsupported"
    reason: str = "nothing on this system counts the restarts of this program"


ReadTable = Callable[[frozenset[str]], Sequence[Sample]]
CountRestarts = Callable[[int, Deadline], Restarts]


def no_restarts(_pid: int, _deadline: Deadline) -> Restarts:
    return Restarts()


@source("processes", ORIGIN, "process.watched")
def read_processes(
    deadline: Deadline,
    watched: Sequence[str],
    count_restarts: CountRestarts = no_restarts,
    *,
    table: ReadTable | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> Reading:
    every_name = dict.fromkeys(filter(None, (clean_text(name, 64) for name in watched)))
    names = tuple(every_name)[:WATCHED_MAX]
    fields = [CONFIGURATION.available("process.watched", names)]
    if names:
        read = table or read_table
        program_names = frozenset(map(program_name, names))
        before = read(program_names)
        wait(WINDOW_S)
        after = read(program_names)
        for name in names:
            fields += program_fields(name, before, after, lambda pid: count_restarts(pid, deadline))
    limitations = left_out(len(every_name), WATCHED_MAX, "watched programs")
    return Reading(tuple(fields), limitations=limitations)


def program_name(name: str) -> str:
    """Return the form in which names of programs are compared: lower case, without ``.exe``."""
    return name.casefold().removesuffix(".exe")


def program_fields(
    name: str,
    before: Iterable[Sample],
    after: Iterable[Sample],
    restarts: Callable[[int], Restarts],
) -> Fields:
    """Yield the fields of a program.

    Args:
        name: The configured name of the program.
        before: The processes at the start of the time window over which CPU use is measured.
        after: The processes at the end of this time window.
        restarts: Returns the number of restarts for the id of a process.
    """
    running = sorted(
        (sample for sample in after if program_name(sample.name) == program_name(name)),
        key=lambda sample: sample.created,
    )
    prefix = f"process.{name}"
    yield ORIGIN.available(f"{prefix}.running", bool(running))
    yield ORIGIN.available(f"{prefix}.count", len(running))
    keys = tuple(f"{prefix}.{aspect}" for aspect in ASPECTS)
    if not running:
        yield from ORIGIN.all_absent(keys, "not-applicable", "the program is not running")
        return
    cpu_s = sum(cpu_seconds(running, {(s.pid, s.created): s.cpu_s for s in before}))
    started_at = datetime.fromtimestamp(running[0].created, UTC).isoformat(timespec="seconds")
    known = restarts(running[0].pid)
    started_key, cpu_key, memory_key, restarts_key = keys
    yield ORIGIN.available(started_key, started_at)
    yield ORIGIN.available(cpu_key, round(cpu_s / WINDOW_S, 4))
    yield ORIGIN.available(memory_key, sum(s.memory_bytes for s in running))
    yield SERVICE_MANAGER.fact(restarts_key, known.count, known.reason, known.status)


def cpu_seconds(running: Iterable[Sample], before: dict[tuple[int, float], float]) -> list[float]:
    """Return the CPU seconds that each process used during the time window.

    ``before`` has the CPU seconds at the start of the window, by process id and creation time. If a
    process has no entry, it started during the window, and all of its CPU time counts.
    """
    return [max(0.0, s.cpu_s - before.get((s.pid, s.created), 0.0)) for s in running]


def read_table(program_names: frozenset[str]) -> tuple[Sample, ...]:
    """Return the processes of these programs. Processes that have ended are skipped."""
    samples = []
    for process in psutil.process_iter():
        try:
            name = process.name()
            if program_name(name) not in program_names:
                continue
            with process.oneshot():
                times = process.cpu_times()
                samples.append(
                    Sample(
                        process.pid,
                        name,
                        process.create_time(),
                        times.user + times.system,
                        process.memory_info().rss,
                    )
                )
        except psutil.Error:
            continue
    return tuple(samples)
