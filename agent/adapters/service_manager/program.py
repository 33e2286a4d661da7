"""Which command line starts this very agent, as a service manager has to write it down."""

import sys
from pathlib import Path

from agent.adapters.service_manager.contract import ServiceManagerError

_HOMES = (Path("/home"), Path("/root"), Path("/Users"))


def agent_command() -> tuple[str, ...]:
    """Return the words that start this agent: the packaged executable, or this Python."""
    if getattr(sys, "frozen", False):
        # Not a link in a directory that others may write: the service starts what it leads to.
        is_windows = sys.platform == "win32"
        return (sys.executable if is_windows else str(Path(sys.executable).resolve()),)
    # Isolated (-I): neither the current directory nor PYTHONPATH says what is run as the service.
    return (sys.executable, "-I", "-m", "agent")


def reachable_by_a_service(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return ``command``. Raises ServiceManagerError if it lies in a person's home directory:
    the service runs as a user of its own, and its sandbox has no homes."""
    program = Path(command[0])
    for path in (program, program.resolve()):
        if any(path.is_relative_to(home) for home in _HOMES):
            raise ServiceManagerError(
                f"{path} lies in a home directory, which the service cannot reach:"
                " install the agent from its package, or into /opt"
            )
    return command


def packaged_for_windows(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return ``command``. Raises ServiceManagerError if it is not the packaged program: Windows
    talks to the very process that it starts, and the python.exe of a virtual environment only
    starts another."""
    if len(command) > 1:
        raise ServiceManagerError(
            "on Windows the service is the packaged program: install venue-agent.exe from its zip"
        )
    return command
