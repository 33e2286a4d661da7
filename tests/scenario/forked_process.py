"""Runs modules as programs, in forks of a server process that has already imported them.

This is faster than `python -m`, because imports take most of a program's time. Each fork has its
own arguments, environment, directory, user and output. But in the list of processes, each fork has
the command line of the server. A test of this list, or of how Python finds modules, must start
`python -m` instead.
"""

import asyncio
import gc
import importlib
import multiprocessing
import os
import runpy
import signal
import sys
import tempfile
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from typing import Final

from tests.paths import ROOT

PRELOADED_MODULES: Final = (
    "agent.cli.collect", "agent.cli.config", "agent.cli.doctor", "agent.cli.enroll",
    "agent.cli.history", "agent.cli.main", "agent.cli.printers", "agent.cli.run",
    "agent.cli.service", "agent.cli.status", "agent.daemon", "agent.doctor.bundle",
    "agent.doctor.registry", "agent.reporting", "controlplane.cli.serve", "controlplane.server",
    "cryptography.hazmat.primitives.asymmetric.ed25519", "httpcore2", "truststore",
    "tests.fakes.unredacted_agent", "tests.scenario.forked_process",
)  # fmt: skip
_context: multiprocessing.context.BaseContext = multiprocessing.get_context(
    "forkserver" if os.name == "posix" else "spawn"
)


def context() -> multiprocessing.context.BaseContext:
    """Return a context whose processes are forks of the server."""
    _context.set_forkserver_preload(list(PRELOADED_MODULES))
    return _context


def fork_this_process() -> None:
    """From now on, fork the calling process instead of a server. The forks share its namespaces.

    The process must have no other threads when it forks.
    """
    global _context  # noqa: PLW0603 - a process has one way to start its forks
    for name in PRELOADED_MODULES:
        importlib.import_module(name)
    gc.freeze()  # for the same reason as in `_Program.run`
    _context = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class _Program:
    module: str
    words: tuple[str, ...]
    environment: dict[str, str]
    output: Path
    errors: Path
    user: int | None

    def run(self) -> None:
        """Run the program in this process. Raises SystemExit as the program does."""
        gc.freeze()  # garbage collection would copy the memory pages of all the server's objects
        writable = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        files = (
            (0, os.devnull, os.O_RDONLY),
            (1, self.output, writable),
            (2, self.errors, writable),
        )
        for number, path, flags in files:
            descriptor = os.open(path, flags)
            os.dup2(descriptor, number)
            if descriptor != number:  # they are equal if the server has no such stream
                os.close(descriptor)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)  # line-buffered, as usual
        os.umask(0o022)
        os.chdir(ROOT)
        if self.user is not None:
            os.setgroups([])
            os.setgid(self.user)
            os.setuid(self.user)
        os.environ.clear()
        os.environ.update(self.environment)
        sys.argv = [self.module, *self.words]
        runpy.run_module(self.module, run_name="__main__", alter_sys=True)


class ForkedProcess:
    """Implements the part of `asyncio.subprocess.Process` that the tests use."""

    def __init__(self, program: _Program) -> None:
        self._process = context().Process(target=program.run)
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    async def wait(self) -> int:
        end_event = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._process.sentinel, end_event.set)
        try:
            await end_event.wait()
        finally:
            loop.remove_reader(self._process.sentinel)
        self._process.join()
        assert self.returncode is not None
        return self.returncode

    def join(self, within_s: float) -> int:
        """Wait for the end and return the exit code. Raises TimeoutError."""
        self._process.join(within_s)
        if self.returncode is None:
            raise TimeoutError(f"process {self.pid} still runs after {within_s:g} s")
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start_forked(
    module: str,
    *words: str,
    environment: dict[str, str],
    output: Path,
    errors: Path | None = None,
    user: int | None = None,
) -> ForkedProcess:
    """Start ``module`` as `python -m` does; its output is appended to files.

    Args:
        errors: The file for stderr; by default ``output``.
        user: The id of the user and of the group to run as.
    """
    return ForkedProcess(_Program(module, words, environment, output, errors or output, user))


async def run_forked(
    module: str,
    *words: str,
    environment: dict[str, str],
    user: int | None = None,
    within_s: float = 120,
) -> tuple[int, str, str]:
    """Run ``module`` to its end; return exit code, stdout and stderr."""
    with tempfile.TemporaryDirectory() as directory:
        output, errors = Path(directory, "output"), Path(directory, "errors")
        process = start_forked(
            module, *words, environment=environment, output=output, errors=errors, user=user
        )
        try:
            async with asyncio.timeout(within_s):
                code = await process.wait()
        finally:
            process.kill()
        return code, output.read_text(), errors.read_text()


def stop_server() -> None:
    """Stop the server and wait for it.

    Its forks' CPU time is added to the CPU time of this process's children when the server ends.
    """
    forkserver._forkserver._stop()
