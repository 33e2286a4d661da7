"""What has to be root's alone before a service that starts with the machine may use it.

The service's program runs as root, or is started by root: whoever may change it, or a directory
on the way to it, has the machine. The same holds for a configuration that is taken over: somebody
may have laid it there before the agent was installed.
"""

import os
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from agent.adapters.accounts.trusted_path import ROOT, Weakness, weakness_below, weakness_of
from agent.adapters.service_manager.contract import Places, ServiceManagerError
from agent.adapters.storage.safe_file import require_own
from agent.errors import StateError

ROOTS: Final = frozenset({ROOT})
_ELSEWHERE: Final = "or install it from its package, or into /opt/venue-agent as root"


def require_safe_program(command: tuple[str, ...], owners: Collection[int] = ROOTS) -> None:
    """Raise ServiceManagerError where others than ``owners`` could change what ``command`` runs."""
    program = Path(command[0])
    whole, parts = program_places(program)
    try:
        for path in (program, *parts):
            _require(weakness_of(path, owners))
        for directory in whole:
            _require(weakness_below(directory, owners))
    except OSError as error:
        raise ServiceManagerError(f"{error.filename or program}: {error.strerror}") from None


def program_places(program: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the directories that are the program's own, whole, and everything that it imports
    from: a package's directory, a virtual environment, this Python's own library."""
    if getattr(sys, "frozen", False):
        directory = program.resolve().parent
        return (directory,), (directory,)
    packages = Path(__file__).parents[2], Path(__file__).parents[3] / "collectors"
    is_environment = sys.prefix != sys.base_prefix
    whole = (*packages, Path(sys.prefix)) if is_environment else packages
    return tuple(whole), (*packages, *_imported_from())


def require_roots_configuration(places: Places, owners: Collection[int] = ROOTS) -> None:
    """Raise ServiceManagerError where somebody else laid out what the service is to use."""
    directory = places.config.parent
    present = next(path for path in (directory, *directory.parents) if os.path.lexists(path))
    try:
        _require(weakness_of(present, owners), "look at what it holds, then ")
        if present == directory:
            for file in (places.config, places.api_key):
                require_own(file)
    except StateError as error:
        raise ServiceManagerError(str(error)) from None
    except OSError as error:
        raise ServiceManagerError(f"{error.filename or present}: {error.strerror}") from None


def require_roots_state(places: Places, owners: Collection[int] = ROOTS) -> None:
    """The same for the state of a service that runs as root: its identity lies there."""
    state = places.state
    present = next(path for path in (state, *state.parents) if os.path.lexists(path))
    try:
        _require(weakness_of(present, owners), "look at what it holds, then ")
        if present == state:
            _require(weakness_below(state, owners), "look at what it holds, then ")
    except OSError as error:
        raise ServiceManagerError(f"{error.filename or state}: {error.strerror}") from None


def _imported_from() -> Iterator[Path]:
    """Yield where modules are looked for, but for the current directory, which is the caller's
    and not the service's."""
    for entry in map(Path, filter(None, sys.path)):
        if entry.exists() and entry.resolve() != Path.cwd():
            yield entry


def _require(weakness: Weakness | None, first: str = "") -> None:
    if weakness is not None:
        fix = f"{first}{weakness.fix}" if first else f"{weakness.fix}, {_ELSEWHERE}"
        raise ServiceManagerError(
            f"not installed: {weakness.detail}, and the service trusts it\nto install: {fix}"
        )
