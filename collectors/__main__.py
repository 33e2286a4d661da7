"""`python -m collectors network|application`: a job on stdin, NDJSON events on stdout.

The first line of stdin is the job as a JSON object, or an empty line for the defaults by hand.
A later line `cancel` asks for the facts so far. When stdin closes, the process that started the job
is gone, and this one ends at once: a killed daemon leaves no process behind.
"""

import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, BinaryIO

from collectors.bounds import bind_this_process
from collectors.contract import (
    ApplicationJob,
    Checkpoint,
    ConfiguredPrinter,
    Confinement,
    Crash,
    Event,
    Facts,
    Job,
    LearnedPrinter,
    NetworkJob,
    Progress,
    Result,
)
from collectors.event_lines import line_of
from collectors.programs import use_system_programs_only
from collectors.sandbox import confine_this_process

KINDS = ("network", "application")
CANCEL_LINE = b"cancel\n"
ORPHANED_EXIT_CODE = 3


class ChildRun:
    """Writes events to a stream, one JSON object a line, and keeps the cancellation."""

    def __init__(self, output: BinaryIO) -> None:
        self.confinement = Confinement()
        self._output = output
        self._lock = threading.Lock()
        self._cancel = threading.Event()
        self._wakers: list[Callable[[], None]] = []

    def progress(self, step: str, done: int, total: int | None = None) -> None:
        self.emit(Progress(step, done, total))

    def checkpoint(self, facts: Facts) -> None:
        self.emit(Checkpoint(self._with_confinement(facts)))

    def result(self, facts: Facts) -> None:
        self.emit(Result(self._with_confinement(facts)))

    @property
    def cancelled(self) -> bool:
        return self._cancel.is_set()

    def on_cancel(self, wake: Callable[[], None]) -> None:
        with self._lock:
            self._wakers.append(wake)
        if self.cancelled:
            wake()

    def cancel(self) -> None:
        self._cancel.set()
        with self._lock:
            wakers = tuple(self._wakers)
        for wake in wakers:
            wake()

    def emit(self, event: Event) -> None:
        line = line_of(event)
        with self._lock:
            self._output.write(line)
            self._output.flush()

    def _with_confinement(self, facts: Facts) -> Facts:
        return replace(facts, confinement=self.confinement)


def job_from_json(kind: str, line: bytes) -> Job:
    """Build the job the parent wrote. An empty line gives the bounds of a run by hand.

    Raises ValueError or TypeError when the line is not a job of this kind.
    """
    given = json.loads(line) if line.strip() else {}
    if given.pop("kind", kind) != kind:
        raise ValueError(f"the job is not of the kind {kind}")
    values: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in given.items()
    }
    if kind == "application":
        return ApplicationJob(**values)
    values["printers"] = tuple(ConfiguredPrinter(**p) for p in values.get("printers", ()))
    values["learned"] = tuple(LearnedPrinter(**p) for p in values.get("learned", ()))
    return NetworkJob(**values)


def collector_of(job: Job) -> Callable[[ChildRun], Facts]:
    """Return the collector the job is for, all of its modules imported. Imports only that one.

    Everything that needs rights which a confined process lacks has been started.
    """
    if isinstance(job, NetworkJob):
        from collectors.network.collector import collect_network

        return partial(collect_network, job)
    from collectors.application.collector import application_collector

    return application_collector(job)


def main() -> int:
    """Exit 0 after a result, 1 after a crash event, 2 for a job that cannot be read."""
    if len(sys.argv) != 2 or sys.argv[1] not in KINDS:
        sys.stderr.write(f"usage: python -m collectors {'|'.join(KINDS)}\n")
        return 2
    try:
        job = job_from_json(sys.argv[1], sys.stdin.buffer.readline())
    except (ValueError, TypeError) as error:
        sys.stderr.write(f"the job cannot be read: {error}\n")
        return 2
    bind_this_process()
    use_system_programs_only()
    run = ChildRun(sys.stdout.buffer)
    try:
        collect = collector_of(job)
        # Before the first thread: one that runs already would stay as free as it was.
        run.confinement = confine_this_process()
        threading.Thread(target=_listen, args=(run,), daemon=True).start()
        run.result(collect(run))
    except Exception as error:  # noqa: BLE001 - the boundary of the collector: sent to the parent
        traceback.print_exc()
        run.emit(Crash(f"{type(error).__name__}: {error}"))
        return 1
    return 0


def _listen(run: ChildRun) -> None:
    for line in sys.stdin.buffer:
        if line == CANCEL_LINE:
            run.cancel()
    os._exit(ORPHANED_EXIT_CODE)


if __name__ == "__main__":
    # Threads of a library that hang in a system call must not keep a finished child alive.
    exit_code = main()
    sys.stdout.flush()
    os._exit(exit_code)
