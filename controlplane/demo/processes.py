"""Starts the processes of a demo. They end when the demo ends or is killed."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeVar

from controlplane.client.errors import CommandError

START_WITHIN_S: Final = 30.0
STOP_WITHIN_S: Final = 15.0
POLL_S: Final = 0.05
_CHILD: Final = (sys.executable, "-I", "-m", "controlplane.demo.child")
"""The beginning of a process's command line.

``-I`` isolates the process: the current directory and PYTHONPATH cannot change which code it runs.
"""

_NO_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({})
Result = TypeVar("Result")
Process = subprocess.Popen[bytes]


class Processes:
    """Starts processes and writes their output to ``directory``. Use it in a ``with`` statement.

    The processes are stopped at the end of the ``with`` statement. Every process inherits the file
    descriptors ``inherited``.
    """

    def __init__(self, directory: Path, *inherited: int) -> None:
        self.directory = directory
        self._inherited = inherited
        self._started: dict[str, Process] = {}

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *_error: object) -> None:
        self.end(*self._started)

    def end(self, *names: str) -> None:
        ending = [self._started.pop(name) for name in names]
        for process in ending:
            assert process.stdin is not None  # noqa: S101 - it is a pipe
            process.stdin.close()  # child.py then stops the process
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
        *command: str,
        inherited_files: Sequence[int] = (),
        environment: Mapping[str, str] = _NO_VARIABLES,
    ) -> Process:
        """Run a module. Its stdout is written to ``name``.out, and its stderr to ``name``.log.

        ``command`` is the name of the module, and its arguments. The process inherits the
        descriptors ``inherited_files``, in addition to those that every process inherits.
        """
        # The variables that configure an agent of this machine must not affect the demo's agent.
        variables = {k: v for k, v in os.environ.items() if not k.startswith("VENUE_AGENT_")}
        output, log = self.directory / f"{name}.out", self.directory / f"{name}.log"
        with output.open("wb") as stdout, log.open("wb") as stderr:
            process = subprocess.Popen(
                (*_CHILD, *command),
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                env={**variables, **environment},
                start_new_session=True,
                pass_fds=() if sys.platform == "win32" else (*self._inherited, *inherited_files),
            )
        self._started[name] = process
        return process

    def wait_for_line(self, name: str, process: Process, pattern: str) -> str:
        """Wait for a line of output that matches ``pattern``, and return the first group.

        Raises CommandError.
        """
        output, line = self.directory / f"{name}.out", re.compile(rf"^{pattern}\n", re.MULTILINE)
        failure = f"the {name} did not start: see {self.directory / name}.log"
        return wait_for(lambda: line.search(output.read_text()), process, failure)[1]


def wait_for(poll: Callable[[], Result | None], process: Process, failure: str) -> Result:
    """Call ``poll`` until it returns a result.

    Raises CommandError with the text ``failure`` if the process ends or the start takes too long.
    """
    deadline = time.monotonic() + START_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        if (result := poll()) is not None:
            return result
        time.sleep(POLL_S)
    raise CommandError(failure)
