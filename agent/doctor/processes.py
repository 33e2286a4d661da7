"""Finds other agents among this machine's processes by their command lines."""

import os
from collections.abc import Sequence
from typing import Final

WRAPPERS: Final = frozenset({"doas", "gdb", "ltrace", "runuser", "strace", "su", "sudo", "timeout"})
"""Programs whose command line can contain the command line of an agent that they start."""


def other_agents(holder: int | None) -> tuple[int, ...] | None:
    """Return the process ids of agents; None if processes cannot be listed.

    This process and its parent are left out. An agent of another user is not
    listed if the system hides the command lines of other users' processes.

    Args:
        holder: The process that has locked the state directory. It is left out as well.
    """
    import psutil  # slow to import, and rarely needed

    excluded_pids = {holder, os.getpid(), os.getppid()}
    try:
        return tuple(
            process.pid
            for process in psutil.process_iter(["cmdline"])
            if process.pid not in excluded_pids and is_agent(tuple(process.info["cmdline"] or ()))
        )
    except (psutil.Error, OSError):
        return None


def describe_processes(pids: Sequence[int]) -> str:
    """Return a text such as "processes 12, 13 and 14"."""
    noun = "process" if len(pids) == 1 else "processes"
    return f"{noun} {' and '.join(', '.join(map(str, pids)).rsplit(', ', 1))}"


def is_agent(words: tuple[str, ...]) -> bool:
    """Return whether ``words`` start a daemon, like `venue-agent run` or `python -m agent run`."""
    for index, word in enumerate(words[:-1]):
        is_program = _name(word) == "venue-agent" or (word == "agent" and words[index - 1] == "-m")
        if is_program:
            return words[index + 1] == "run" and _name(words[0]) not in WRAPPERS
    return False


def _name(word: str) -> str:
    return word.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".exe")
