"""The common part of the services under systemd and launchd.

This module also checks that only root can change the program and the configuration. Under launchd,
the service itself runs as root. Under systemd, root runs the program at least for
`service install`. A user who can change the program, or a directory of its path, therefore controls
the machine. A configuration that existed before the installation could come from another user.
"""

import os
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from agent.adapters.accounts.trusted_path import ROOT, Weakness, weakness_below, weakness_of
from agent.adapters.service_manager.commands import Run, run_program
from agent.adapters.service_manager.contract import (
    NotPermitted,
    ServiceManager,
    ServiceManagerError,
    ServicePaths,
)
from agent.adapters.storage.atomic_file import write_atomically
from agent.adapters.storage.safe_file import require_own
from agent.errors import StateError

ROOT_ONLY: Final = frozenset({ROOT})
_ALTERNATIVE: Final = "or install the agent from its package, or into /opt/venue-agent as root"
_CHECK_FIRST: Final = "check its content, then "
_HOMES: Final = (Path("/home"), Path("/root"), Path("/Users"))
_WORLD_READABLE: Final = 0o644


@dataclass
class PosixService(ServiceManager):
    """A service that root manages with command-line programs.

    Args:
        command_line: the command that starts the agent.
        run: runs the programs of the service manager.
        file_system: the root of the file system.
        is_root: whether this process has root's rights.
        owners: the ids of the users whose files the service trusts.
    """

    command_line: tuple[str, ...]
    run: Run = run_program
    file_system: Path = Path("/")
    is_root: Callable[[], bool] = lambda: os.geteuid() == 0
    owners: Collection[int] = ROOT_ONLY
    state_path: ClassVar[str]
    """The state directory, relative to ``file_system``."""
    has_key_path_in_config: ClassVar[bool]
    """See `ServicePaths`."""

    @property
    def paths(self) -> ServicePaths:
        return ServicePaths(
            config=self.file_system / "etc/venue-agent/config.toml",
            api_key=self.file_system / "etc/venue-agent/api-key",
            state=self.file_system / self.state_path,
            has_key_path_in_config=self.has_key_path_in_config,
        )

    def require_rights(self) -> None:
        if not self.is_root():
            raise NotPermitted("changing the service needs root")


def require_reachable(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return ``command``. Raises ServiceManagerError if its program is in a home directory.

    A service under systemd runs as its own user, in a sandbox that restricts access to home
    directories.
    """
    program = Path(command[0])
    for path in (program, program.resolve()):
        if any(path.is_relative_to(home) for home in _HOMES):
            raise ServiceManagerError(
                f"{path} is in a home directory, which the service cannot reach:"
                " install the agent from its package, or into /opt"
            )
    return command


def require_safe_program(command: tuple[str, ...], owners: Collection[int] = ROOT_ONLY) -> None:
    """Raise ServiceManagerError if users other than ``owners`` can change the program."""
    program = Path(command[0])
    own_directories, import_directories = program_directories(program)
    for path in (program, *import_directories):
        _require_safe(path, owners)
    for directory in own_directories:
        _require_safe(directory, owners, weakness_below)


def program_directories(program: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the program's own directories, and the directories from which it imports modules.

    All files in its own directories, which are its packages and its virtual environment, belong to
    the program.
    """
    if getattr(sys, "frozen", False):
        directory = program.resolve().parent
        return (directory,), (directory,)
    agent_package = Path(__file__).parents[2]
    packages = agent_package, agent_package.parent / "collectors"
    is_in_virtual_environment = sys.prefix != sys.base_prefix
    own_directories = (*packages, Path(sys.prefix)) if is_in_virtual_environment else packages
    return tuple(own_directories), (*packages, *_import_paths())


def require_safe_configuration(paths: ServicePaths, owners: Collection[int] = ROOT_ONLY) -> None:
    """Raise ServiceManagerError if the configuration or the file of the API key is not safe.

    Users other than ``owners`` must not be able to change the directory of the two files, and both
    files must belong to the owner of this directory (`require_own`).
    """
    directory = paths.config.parent
    existing_part = _require_safe_existing_part(directory, owners)
    if existing_part == directory:
        try:
            for file in (paths.config, paths.api_key):
                require_own(file)
        except StateError as error:
            raise ServiceManagerError(str(error)) from None
        except OSError as error:
            raise ServiceManagerError(f"{error.filename or file}: {error.strerror}") from None


def require_safe_state(paths: ServicePaths, owners: Collection[int] = ROOT_ONLY) -> None:
    """Raise ServiceManagerError if users other than ``owners`` could change the state directory.

    Call this for a service that runs as root.
    """
    if _require_safe_existing_part(paths.state, owners) == paths.state:
        _require_safe(paths.state, owners, weakness_below, _CHECK_FIRST)


def write_if_changed(path: Path, content: bytes) -> bool:
    """Write a world-readable file. Return whether its content changed."""
    if path.is_file() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content, _WORLD_READABLE)
    return True


def _import_paths() -> Iterator[Path]:
    """Yield the directories of sys.path, except the current directory.

    The service runs with option -I, so it does not import from the current directory.
    """
    for entry in map(Path, filter(None, sys.path)):
        if entry.exists() and entry.resolve() != Path.cwd():
            yield entry


def _require_safe_existing_part(path: Path, owners: Collection[int]) -> Path:
    """Check the longest existing part of ``path``, and return this part."""
    existing_part = next(
        ancestor for ancestor in (path, *path.parents) if os.path.lexists(ancestor)
    )
    _require_safe(existing_part, owners, first_step=_CHECK_FIRST)
    return existing_part


def _require_safe(
    path: Path,
    owners: Collection[int],
    find_weakness: Callable[[Path, Collection[int]], Weakness | None] = weakness_of,
    first_step: str = "",
) -> None:
    try:
        weakness = find_weakness(path, owners)
    except OSError as error:
        raise ServiceManagerError(f"{error.filename or path}: {error.strerror}") from None
    if weakness is not None:
        fix = f"{first_step}{weakness.fix}" if first_step else f"{weakness.fix}, {_ALTERNATIVE}"
        raise ServiceManagerError(
            f"not installed: {weakness.detail}. The service must not use files that other users can"
            f" change.\nto install: {fix}"
        )
