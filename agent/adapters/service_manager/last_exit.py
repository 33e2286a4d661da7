"""Reads how the previous run of the agent ended, according to systemd.

When the agent ends, the unit writes the file ``last-exit`` into the state directory. It contains
one line with SERVICE_RESULT, EXIT_CODE and EXIT_STATUS (systemd.exec(5)), such as ``watchdog killed
ABRT``.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.adapters.storage.state import StateDirectory

NAME: Final = "last-exit"
_MAX_BYTES: Final = 200
_PLAIN_WORD: Final = re.compile(r"[A-Za-z0-9+-]+")

_DESCRIPTIONS: Final = {
    "success": "stopped cleanly",
    "watchdog": "the event loop hung, so the watchdog killed the agent",
    "oom-kill": "killed for lack of memory",
    "signal": "killed by signal",
    "core-dump": "crashed with signal",
    "exit-code": "ended with exit code",
    "timeout": "did not start or stop in time and was killed",
    "start-limit-hit": "was started too often",
    "resources": "could not be started: a resource is missing",
    "protocol": "ended before it was ready",
}
_WITH_STATUS: Final = frozenset({"signal", "core-dump", "exit-code"})
"""The results whose description ends with the status."""


@dataclass(frozen=True, slots=True)
class LastExit:
    """``result`` is SERVICE_RESULT. ``status`` is the exit code or the name of the signal."""

    result: str
    status: str = ""

    def describe(self) -> str:
        words = _DESCRIPTIONS.get(self.result, self.result)
        if self.result in _WITH_STATUS:
            words = f"{words} {self.status}".strip()
        return f"{words}: a wrong configuration" if self == _WRONG_CONFIGURATION else words


_WRONG_CONFIGURATION: Final = LastExit("exit-code", "2")


def read_last_exit(state_dir: Path) -> LastExit | None:
    """Return how the previous run ended, or None if this is unknown.

    Raises StateError if ``last-exit`` is not the agent's own file.
    """
    try:
        return parse_last_exit(StateDirectory(state_dir).read(NAME, _MAX_BYTES))
    except OSError:
        return None


def parse_last_exit(line: bytes) -> LastExit | None:
    """Parse the line of ``last-exit``. Returns None if it is invalid."""
    words = line.decode("ascii", "replace").split()
    if not words or not all(map(_PLAIN_WORD.fullmatch, words)):
        return None
    return LastExit(words[0], words[2] if len(words) > 2 else "")
