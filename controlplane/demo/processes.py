"""The processes of a demo: each ends with it, however that ends."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Final, TypeVar

from controlplane.client.errors import CommandError

START_WITHIN_S: Final = 30.0
STOP_WITHIN_S: Final = 15.0
POLL_S: Final = 0.05
_TIED: Final = (sys.executable, "-I", "-m", "controlplane.demo.tied")
"""Isolated: neither the current directory nor PYTHONPATH says what is run."""

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
Found = TypeVar("Found")
Process = subprocess.Popen[bytes]


class Processes:
    """Starts processes with their output in ``home``, and ends all of them at its own end.

    ``inherited`` are descriptors that each of them gets.
    """

    def __init__(self, home: Path, *inherited: int) -> None:
        self.home = home
        self._inherited = inherited
        self._started: dict[str, Process] = {}

    def __enter__(self) -> "Processes":
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        self.end(*self._started)

    def end(self, *names: str) -> None:
        ending = [self._started.pop(name) for name in names]
        for process in ending:
            assert process.stdin is not None  # noqa: S101 - it was asked for
            process.stdin.close()  # the word to stop, see tied.py
        deadline = time.monotonic() + STOP_WITHIN_S
        for process in ending:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(
        self,
        name: str,
        *words: str,
        inherited: Sequence[int] = (),
        environment: Mapping[str, str] = _NOTHING,
    ) -> Process:
        """Run a module; what it says goes to ``name``.out and ``name``.log."""
        # What configures an agent of this machine is not for that of the demo.
        kept = {k: v for k, v in os.environ.items() if not k.startswith("VENUE_AGENT_")}
        output, log = self.home / f"{name}.out", self.home / f"{name}.log"
        with output.open("wb") as stdout, log.open("wb") as stderr:
            process = subprocess.Popen(
                (*_TIED, *words),
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                env={**kept, **environment},
                start_new_session=True,
                pass_fds=() if sys.platform == "win32" else (*self._inherited, *inherited),
            )
        self._started[name] = process
        return process

    def said(self, name: str, process: Process, pattern: str) -> str:
        """Wait for a line on stdout, return its group. Raises CommandError if it does not come."""
        output, line = self.home / f"{name}.out", re.compile(rf"^{pattern}\n", re.MULTILINE)
        failure = f"the {name} did not start: see {self.home / name}.log"
        return until(lambda: line.search(output.read_text()), process, failure)[1]


def until(look: Callable[[], Found | None], process: Process, failure: str) -> Found:
    """Return what ``look`` finds while ``process`` runs. Raises CommandError with ``failure``."""
    deadline = time.monotonic() + START_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        if (found := look()) is not None:
            return found
        time.sleep(POLL_S)
    raise CommandError(failure)
