"""Starts the service, or the bare framework, as a separate process."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from tests.bench.processes import cost_of


@dataclass(frozen=True, slots=True)
class Service:
    port: int
    pid: int

    @property
    def cpu_s(self) -> float:
        return cost_of(self.pid).cpu_s

    @property
    def files(self) -> int:
        """Number of open files."""
        return psutil.Process(self.pid).num_fds()

    @property
    def rss_mib(self) -> float:
        return cost_of(self.pid).rss_mib


@contextlib.contextmanager
def service(database: str, *words: str, files: int | None = None) -> Iterator[Service]:
    """Run the service on ``database``. It has no rate limit, unless ``words`` set one.

    Args:
        words: further options.
        files: maximum number of its open files.
    """
    limit = () if files is None else ("prlimit", f"--nofile={files}:{files}")
    command = (sys.executable, "-m", "controlplane", "serve", "--database", database, "--port", "0")
    with _process(*limit, *command, "--rate", "0", "--log-level", "error", *words) as started:
        yield started


@contextlib.contextmanager
def bare(kind: str) -> Iterator[Service]:
    """Run the web framework without the service. ``kind`` is its HTTP parser: h11 or httptools."""
    with running("tests.bench.fleet.bare", kind) as started:
        yield started


@contextlib.contextmanager
def running(module: str, *words: str) -> Iterator[Service]:
    """Run a module that prints its address."""
    with _process(sys.executable, "-m", module, *words) as started:
        yield started


@contextlib.contextmanager
def _process(*command: str) -> Iterator[Service]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            yield Service(int(line.rpartition(":")[2]), process.pid)
        finally:
            process.terminate()
            process.wait(30)


@contextlib.contextmanager
def attacking(module: str, port: int, *words: str) -> Iterator[None]:
    """Run a module of this package that attacks the service at ``port``, until the context ends.

    The context begins when the module has printed its first line.
    """
    command = (sys.executable, "-m", f"tests.bench.fleet.{module}", str(port), *words)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.kill()
