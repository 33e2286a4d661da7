"""Other agents among this machine's processes, by their command lines."""

import os
from typing import Final

WRAPPERS: Final = frozenset({"doas", "gdb", "ltrace", "runuser", "strace", "su", "sudo", "timeout"})
"""Programs that have an agent's command line among their words and only wait for it to end."""


def other_agents(holder: int | None) -> tuple[int, ...] | None:
    """Return the ids of agents besides ``holder`` and this process; None where unknown.

    Command lines of other users' processes may be hidden.
    """
    import psutil  # `status` asks only where the configuration is wrong or closed

    mine = {holder, os.getpid(), os.getppid()}
    try:
        found = [
            (process.pid, process.info["cmdline"]) for process in psutil.process_iter(["cmdline"])
        ]
    except (psutil.Error, OSError):
        return None
    return tuple(pid for pid, words in found if pid not in mine and is_agent(tuple(words or ())))


def is_agent(words: tuple[str, ...]) -> bool:
    """Tell whether a command line is that of a daemon: `venue-agent run`, `python -m agent run`."""
    for index, word in enumerate(words[:-1]):
        starts = _name(word) == "venue-agent" or (word == "agent" and words[index - 1] == "-m")
        if starts:
            return words[index + 1] == "run" and _name(words[0]) not in WRAPPERS
    return False


def _name(word: str) -> str:
    return word.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".exe")
