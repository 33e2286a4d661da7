"""Other agents among this machine's processes, by their command lines."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from collectors.programs import find_program, program_environment

READ_MAX: Final = 4096
WAITING: Final = frozenset({"doas", "gdb", "ltrace", "runuser", "strace", "su", "sudo", "timeout"})
"""Programs that have an agent's command line among their words and only wait for it to end."""


def other_agents(holder: int | None, proc: Path = Path("/proc")) -> tuple[int, ...] | None:
    """Return the ids of agents besides ``holder`` and this process; None where unknown."""
    lines = _from_proc(proc) if proc.is_dir() else _from_ps()
    if lines is None:
        return None
    mine = {holder, os.getpid(), os.getppid()}
    return tuple(pid for pid, words in lines if pid not in mine and is_agent(words))


def is_agent(words: tuple[str, ...]) -> bool:
    """Tell whether a command line is that of a daemon: `venue-agent run`, `python -m agent run`."""
    for index, word in enumerate(words[:-1]):
        starts = _name(word) == "venue-agent" or (word == "agent" and words[index - 1] == "-m")
        if starts:
            return words[index + 1] == "run" and _name(words[0]) not in WAITING
    return False


def _name(word: str) -> str:
    return word.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".exe")


def _from_proc(proc: Path) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield (process id, command line) of proc(5); processes of others may be hidden."""
    for entry in proc.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            with (entry / "cmdline").open("rb") as file:
                words = file.read(READ_MAX).decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        yield int(entry.name), tuple(words)


def _from_ps() -> Iterator[tuple[int, tuple[str, ...]]] | None:
    if sys.platform == "win32":
        return None
    try:
        done = subprocess.run(
            [find_program("ps") or "/bin/ps", "-axo", "pid=,command="],
            capture_output=True,
            text=True,
            timeout=3,
            check=False,
            env=program_environment(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_ps(done.stdout)


def parse_ps(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Read `ps -axo pid=,command=`; words with blanks in them fall apart, which does no harm."""
    for line in text.splitlines():
        pid, _, command = line.strip().partition(" ")
        if pid.isascii() and pid.isdigit():
            yield int(pid[:9]), tuple(command.split())
