"""One of the system's own programs, run without a shell, bounded in time and output."""

import subprocess
import threading
from dataclasses import dataclass

from collectors.application.deadline import Deadline
from collectors.application.source import Unreadable
from collectors.programs import find_program, neutral_directory, program_environment

OUTPUT_MAX_BYTES = 4 * 1024 * 1024
_NO_WINDOW: int = getattr(subprocess, "CREATE_NO_WINDOW", 0)
"""Windows would open a console window on the till's screen for each program."""

KILLED_EARLY_S = 0.05
"""A program is ended this long before the deadline, so that its silence can still be told."""


@dataclass(frozen=True, slots=True)
class Output:
    """``error`` is what the program wrote to its standard error, at most 64 KiB."""

    exit_code: int
    data: bytes
    error: bytes


def run_command(
    arguments: tuple[str, ...], deadline: Deadline, max_bytes: int = OUTPUT_MAX_BYTES
) -> Output:
    """Run a program of the system to its end, in the C locale, with an empty standard input.

    Raises Unreadable("unsupported") when it is not installed, TimeoutError past the deadline,
    ValueError when it writes more than ``max_bytes``.
    """
    return output_of(start_command(arguments), arguments[0], deadline, max_bytes)


def start_command(arguments: tuple[str, ...]) -> "subprocess.Popen[bytes]":
    """Start a program for `output_of`. Raises Unreadable("unsupported") when there is none."""
    program = find_program(arguments[0])
    if program is None:
        raise Unreadable("unsupported", f"{arguments[0]} is not installed")
    return subprocess.Popen(
        (program, *arguments[1:]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=program_environment(),
        cwd=neutral_directory(),
        creationflags=_NO_WINDOW,
    )


def output_of(
    process: "subprocess.Popen[bytes]", name: str, deadline: Deadline, max_bytes: int
) -> Output:
    """Wait for the end of a started program, as `run_command` does."""
    late = threading.Event()

    def end() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(max(0.0, deadline.remaining_s() - KILLED_EARLY_S), end)
    timer.daemon = True
    timer.start()
    try:
        return _finish(process, name, late, max_bytes)
    finally:
        timer.cancel()
        process.kill()
        release(process)


def _finish(
    process: "subprocess.Popen[bytes]", name: str, late: threading.Event, max_bytes: int
) -> Output:
    assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018 - piped
    data = process.stdout.read(max_bytes + 1)
    if late.is_set():
        raise TimeoutError(f"{name} did not answer within its time")
    if len(data) > max_bytes:
        raise ValueError(f"{name} wrote more than {max_bytes} bytes")
    error = process.stderr.read(65536)
    return Output(process.wait(), data, error)


def release(process: "subprocess.Popen[bytes]") -> None:
    """Close the pipes of an ended or killed program, and reap it if it can be reaped."""
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    try:
        process.wait(timeout=0.2)
    except subprocess.TimeoutExpired:
        # Stuck in the kernel (a dead disk): the system reaps it when this process has ended.
        return
