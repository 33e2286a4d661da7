"""Runs the command-line programs of a service manager."""

import subprocess
from dataclasses import dataclass
from typing import Final

from agent.adapters.service_manager.contract import ServiceManagerError
from collectors.programs import find_program, neutral_directory, program_environment

TIMEOUT_S: Final = 90.0
"""Longer than the longest start or stop that a unit allows."""


@dataclass(frozen=True, slots=True)
class Output:
    """Exit code and output of a program."""

    code: int
    stdout: str = ""
    stderr: str = ""


@dataclass(frozen=True, slots=True)
class SystemCommands:
    """Programs of this machine, with untranslated output."""

    timeout_s: float = TIMEOUT_S

    def run(self, *words: str) -> Output:
        """Run a program to its end. Raises ServiceManagerError if it cannot be run."""
        program = find_program(words[0])
        if program is None:
            raise ServiceManagerError(f"this machine has no {words[0]}")
        try:
            done = subprocess.run(
                (program, *words[1:]),
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=self.timeout_s,
                stdin=subprocess.DEVNULL,
                env=program_environment(),
                cwd=neutral_directory(),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ServiceManagerError(f"{words[0]} did not end in {self.timeout_s:.0f} s") from None
        except OSError as error:
            raise ServiceManagerError(f"{program}: {error.strerror}") from None
        return Output(done.returncode, done.stdout, done.stderr)


def checked(commands: SystemCommands, *words: str) -> Output:
    """Run a program that must succeed. Raises ServiceManagerError with its last line of output."""
    output = commands.run(*words)
    if output.code != 0:
        lines = (output.stderr or output.stdout).strip().splitlines()
        reason = lines[-1] if lines else f"it ended with exit code {output.code}"
        raise ServiceManagerError(f"{' '.join(words)}: {reason}")
    return output
