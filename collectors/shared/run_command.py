"""Runs one of the system's own programs without a shell, with limits on time and output."""

import contextlib
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import IO

from collectors.programs import find_program, neutral_directory, program_environment

OUTPUT_MAX_BYTES = 4 * 1024 * 1024
_NO_WINDOW: int = getattr(subprocess, "CREATE_NO_WINDOW", 0)
"""Without this flag, Windows opens a console window on the till's screen for each program."""

ERROR_MAX_BYTES = 64 * 1024
_CHUNK_BYTES = 65536
KILLED_EARLY_S = 0.05
"""A program is killed this long before the deadline, so that the timeout can still be reported."""
REAPED_WITHIN_S = 0.2
"""Maximum time to wait for the end of a killed program."""


class NotInstalled(FileNotFoundError):
    """The system has no such program."""


@dataclass(frozen=True, slots=True)
class Output:
    """``data`` is the program's standard output, ``error`` at most 64 KiB of its standard error."""

    exit_code: int
    data: bytes
    error: bytes


def run_command(
    arguments: tuple[str, ...],
    deadline_s: float,
    max_bytes: int = OUTPUT_MAX_BYTES,
    environ: Mapping[str, str] = os.environ,
) -> Output:
    """Run a program of the system to its end, in the C locale, with an empty standard input.

    ``deadline_s`` is a time of ``time.monotonic()``. The program gets the variables of ``environ``
    that `program_environment` selects. Raises NotInstalled, TimeoutError after the deadline,
    another OSError, or ValueError if the program writes more than ``max_bytes``.
    """
    return output_of(start_command(arguments, environ), arguments[0], deadline_s, max_bytes)


def start_command(
    arguments: tuple[str, ...], environ: Mapping[str, str] = os.environ
) -> "subprocess.Popen[bytes]":
    """Start a program for `output_of`. Raises NotInstalled or another OSError."""
    program = find_program(arguments[0])
    if program is None:
        raise NotInstalled(f"{arguments[0]} is not installed")
    return subprocess.Popen(
        (program, *arguments[1:]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=program_environment(environ),
        cwd=neutral_directory(),
        creationflags=_NO_WINDOW,
    )


def output_of(
    process: "subprocess.Popen[bytes]",
    name: str,
    deadline_s: float,
    max_bytes: int = OUTPUT_MAX_BYTES,
) -> Output:
    """Wait for a started program, and return its output. Raises the errors of `run_command`,
    except NotInstalled.

    If this process started the program as root and then became an ordinary user, it cannot kill the
    program. The program is then abandoned.
    """
    late = threading.Event()

    def end() -> None:
        late.set()
        _kill(process)

    timer = threading.Timer(max(0.0, deadline_s - time.monotonic() - KILLED_EARLY_S), end)
    timer.daemon = True
    timer.start()
    try:
        return _read_to_end(process, name, late, max_bytes, deadline_s)
    finally:
        timer.cancel()
        _kill(process)
        release(process)


def _read_to_end(
    process: "subprocess.Popen[bytes]",
    name: str,
    late: threading.Event,
    max_bytes: int,
    deadline_s: float,
) -> Output:
    assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018 - piped
    data, error = bytearray(), bytearray()
    streams = {process.stdout: data, process.stderr: error}
    readers = _start_readers(process, streams)
    while streams and len(data) <= max_bytes:
        ready = _wait_for_data(streams, deadline_s)
        if not ready:
            late.set()
            break
        for stream in ready:
            chunk = os.read(stream.fileno(), _CHUNK_BYTES)
            if not chunk:
                del streams[stream]
            elif stream is process.stdout:
                data += chunk
            else:
                error += chunk[: ERROR_MAX_BYTES - len(error)]
    if len(data) > max_bytes and not late.is_set():
        raise ValueError(f"{name} wrote more than {max_bytes} bytes")
    code = None
    if not late.is_set():
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(max(0.0, deadline_s - time.monotonic()))
    for reader in readers:
        reader.join(max(0.0, deadline_s - time.monotonic()))
    if code is None or late.is_set() or any(reader.is_alive() for reader in readers):
        raise TimeoutError(f"{name} did not answer before the deadline")
    return Output(code, bytes(data), bytes(error))


def _start_readers(
    process: "subprocess.Popen[bytes]", streams: dict[IO[bytes], bytearray]
) -> list[threading.Thread]:
    """On Windows, start a thread that reads standard error. Remove this stream from ``streams``.

    Windows cannot wait for several pipes, and the program waits while its pipe for errors is full.
    """
    if sys.platform == "win32" and process.stderr is not None:
        arguments = (process.stderr, streams.pop(process.stderr))
        reader = threading.Thread(target=_read_errors, args=arguments, daemon=True)
        reader.start()
        process.stderr = None  # the thread closes it
        return [reader]
    return []


def _read_errors(stream: IO[bytes], error: bytearray) -> None:
    """Read standard error to its end, and close it."""
    with stream, contextlib.suppress(OSError):
        while chunk := os.read(stream.fileno(), _CHUNK_BYTES):
            error += chunk[: ERROR_MAX_BYTES - len(error)]


def _wait_for_data(streams: Iterable[IO[bytes]], deadline_s: float) -> list[IO[bytes]]:
    """Wait until streams have data or have ended, and return them. Return [] at the deadline.

    On Windows a pipe cannot be waited for, so this function returns the only stream at once. The
    caller's read then waits for the data, at most until the timer of `output_of` kills the program.
    """
    by_number = {stream.fileno(): stream for stream in streams}
    if sys.platform == "win32":
        return list(by_number.values())[:1]
    poller = select.poll()
    for number in by_number:
        poller.register(number, select.POLLIN)
    events = poller.poll(max(0.0, deadline_s - time.monotonic()) * 1000)
    return [by_number[number] for number, _ in events]


def _kill(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(PermissionError):
        process.kill()


def release(process: "subprocess.Popen[bytes]") -> None:
    """Close the pipes of a program that has ended or was killed, and reap it if possible."""
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    try:
        process.wait(timeout=REAPED_WITHIN_S)
    except subprocess.TimeoutExpired:
        # The program hangs in the kernel, for example because of a dead disk, or this process is
        # not permitted to kill it. The system reaps the program after this process has ended.
        return
