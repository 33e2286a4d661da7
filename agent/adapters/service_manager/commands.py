"""Runs the command-line programs of a service manager."""

import subprocess
from dataclasses import dataclass
from typing import Final, Protocol

from agent.adapters.service_manager.contract import ServiceManagerError
from collectors.programs import find_program, neutral_directory, program_environment

TIMEOUT_S: Final = 90.0
"""Longer than the longest start or stop a unit allows."""


@dataclass(frozen=True, slots=True)
class Output:
    code: int
    stdout: str = ""
    stderr: str = ""


class Commands(Protocol):
    def run(self, *words: str) -> Output:
        """Run a program to its end. Raises ServiceManagerError when it cannot be run."""
        ...


class SystemCommands:
    """Programs of this machine, with untranslated output."""

    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s

    def run(self, *words: str) -> Output:
        program = find_program(words[0])
        if program is None:
            raise ServiceManagerError(f"this machine has no {words[0]}")
        try:
            done = subprocess.run(
                (program, *words[1:]),
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=self._timeout_s,
                stdin=subprocess.DEVNULL,
                env=program_environment(),
                cwd=neutral_directory(),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ServiceManagerError(
                f"{words[0]} did not end in {self._timeout_s:.0f} s"
            ) from None
        except OSError as error:
            raise ServiceManagerError(f"{program}: {error.strerror}") from None
        return Output(done.returncode, done.stdout, done.stderr)


def checked(commands: Commands, *words: str) -> Output:
    """Run a program that must succeed. Raises ServiceManagerError with its own words."""
    output = commands.run(*words)
    if output.code != 0:
        complaint = (output.stderr or output.stdout).strip().splitlines()
        said = complaint[-1] if complaint else f"it ended with {output.code}"
        raise ServiceManagerError(f"{' '.join(words)}: {said}")
    return output
