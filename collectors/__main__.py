"""`python -m collectors network|application` reads a job from stdin and writes events to stdout.

The first line of stdin is the job as a JSON object. An empty line stands for a job with the default
bounds, which is useful for a manual run. A later line `cancel` ends the collection early: the
result has only the facts that were collected before it. Each event is one line of JSON (NDJSON).

When stdin closes, the parent process has ended. This process then ends at once, so that a killed
daemon leaves no process behind.
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

from collectors.bounds import limit_this_process
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
    WatchedDevice,
)
from collectors.event_lines import line_of
from collectors.programs import use_system_programs_only
from collectors.sandbox import confine_this_process

KINDS = ("network", "application")
CANCEL_LINE = b"cancel\n"
ORPHANED_EXIT_CODE = 3
"""Exit code after the parent process has ended."""


class ChildRun:
    """Writes events to a stream, one JSON object per line. Records whether the job is cancelled.

    It is thread-safe.
    """

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
    """Parse the job that the parent wrote. An empty line gives a job with the default bounds.

    Raises ValueError or TypeError if the line is not a job of this kind.
    """
    arguments = json.loads(line) if line.strip() else {}
    if not isinstance(arguments, dict):
        raise ValueError("the job is not a JSON object")
    if arguments.pop("kind", kind) != kind:
        raise ValueError(f"the job is not of the kind {kind}")
    values: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in arguments.items()
    }
    values["learned"] = tuple(LearnedPrinter(**p) for p in values.get("learned", ()))
    values["devices"] = tuple(WatchedDevice(**d) for d in values.get("devices", ()))
    if kind == "application":
        return ApplicationJob(**values)
    values["printers"] = tuple(ConfiguredPrinter(**p) for p in values.get("printers", ()))
    return NetworkJob(**values)


def collector_of(job: Job) -> Callable[[ChildRun], Facts]:
    """Import and return the collector for the kind of the job. The other collector is not imported.

    Call this function before the process confines itself: for an application job, it starts
    programs that need rights which a confined process lacks.
    """
    if isinstance(job, NetworkJob):
        from collectors.network.collector import collect_network

        return partial(collect_network, job)
    from collectors.application.collector import application_collector

    return application_collector(job)


def main() -> int:
    """Run one job. Returns the exit code.

    The code is 0 after a result, 1 after a crash event, and 2 if the arguments or the job are
    invalid.
    """
    if len(sys.argv) != 2 or sys.argv[1] not in KINDS:
        sys.stderr.write(f"usage: python -m collectors {'|'.join(KINDS)}\n")
        return 2
    try:
        job = job_from_json(sys.argv[1], sys.stdin.buffer.readline())
    except (ValueError, TypeError) as error:
        sys.stderr.write(f"the job cannot be read: {error}\n")
        return 2
    limit_this_process()
    use_system_programs_only()
    run = ChildRun(sys.stdout.buffer)
    try:
        collect = collector_of(job)
        # Confinement applies to the calling thread and the threads that it starts later. So the
        # process confines itself before it starts its first thread.
        run.confinement = confine_this_process()
        threading.Thread(target=_watch_stdin, args=(run,), daemon=True).start()
        run.result(collect(run))
    except Exception as error:  # noqa: BLE001 - any error is reported to the parent process
        traceback.print_exc()
        run.emit(Crash(f"{type(error).__name__}: {error}"))
        return 1
    return 0


def _watch_stdin(run: ChildRun) -> None:
    """Cancel ``run`` at a cancel line. End this process when stdin closes."""
    for line in sys.stdin.buffer:
        if line == CANCEL_LINE:
            run.cancel()
    os._exit(ORPHANED_EXIT_CODE)


if __name__ == "__main__":
    # A normal exit waits for threads, so a library's thread that hangs in a system call would keep
    # the finished process alive. os._exit does not wait.
    exit_code = main()
    sys.stdout.flush()
    os._exit(exit_code)
