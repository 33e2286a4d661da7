"""Runs the command-line programs of a service manager."""

import subprocess
from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Final

from agent.adapters.service_manager.contract import ServiceManagerError
from collectors.programs import find_program, neutral_directory, program_environment

TIMEOUT_S: Final = 90.0
"""Timeout of a program. It exceeds the time limits of the systemd unit for start and stop."""

Run = Callable[..., CompletedProcess[str]]
"""The type of `run_program`, which tests replace."""


def run_program(*words: str, timeout_s: float = TIMEOUT_S) -> CompletedProcess[str]:
    """Run a program until it ends. Its output is in English.

    Raises ServiceManagerError if the program cannot be run or exceeds ``timeout_s``.
    """
    program = find_program(words[0])
    if program is None:
        raise ServiceManagerError(f"this machine has no {words[0]}")
    try:
        return subprocess.run(
            (program, *words[1:]),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            env=program_environment(),
            cwd=neutral_directory(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ServiceManagerError(f"{words[0]} did not end in {timeout_s:.0f} s") from None
    except OSError as error:
        raise ServiceManagerError(f"{program}: {error.strerror}") from None


def run_checked(run: Run, *words: str) -> CompletedProcess[str]:
    """Run a program. If it fails, raise ServiceManagerError with its last line of output."""
    output = run(*words)
    if output.returncode != 0:
        lines = (output.stderr or output.stdout).strip().splitlines()
        reason = lines[-1] if lines else f"it ended with exit code {output.returncode}"
        raise ServiceManagerError(f"{' '.join(words)}: {reason}")
    return output
