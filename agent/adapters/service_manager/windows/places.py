"""What has to be the system's alone on Windows before a service that runs as SYSTEM may use it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from agent.adapters.service_manager.contract import ServiceManagerError
from agent.adapters.service_manager.windows.rights import Security, who_else

_MOVE_AWAY: Final = "look at what it holds, move it away, and install again"
_REINSTALL: Final = "unpack the agent as an administrator into C:\\Program Files, and install again"


class Rights(Protocol):
    """The part of `windows.ServiceControl` that tells and makes rights."""

    def make_closed(self, directory: Path) -> None: ...

    def protect(self, path: Path) -> None: ...

    def security(self, path: Path) -> Security: ...

    def name_of(self, sid: str) -> str: ...


def take_directory(rights: Rights, home: Path) -> None:
    """Make the directory of configuration, key and state, or take it over from an agent that was
    installed before: one that somebody else made may hold an identity and an address of theirs.

    Raises ServiceManagerError.
    """
    for parent in home.parents:
        _require(rights, parent, _MOVE_AWAY, is_on_the_way=True)
    if not os.path.lexists(home):
        rights.make_closed(home)
        return
    for path in _whole(home):
        _require(rights, path, f"{home}: {_MOVE_AWAY}")
    rights.protect(home)


def require_safe_program(rights: Rights, program: Path) -> None:
    """Raise ServiceManagerError where others could change the program or what it loads."""
    directory = program.parent
    for parent in directory.parents:
        _require(rights, parent, _REINSTALL, is_on_the_way=True)
    for path in _whole(directory):
        _require(rights, path, _REINSTALL)


def _whole(directory: Path) -> Iterator[Path]:
    yield directory
    for parent, folders, files in os.walk(directory):
        yield from (Path(parent, name) for name in (*folders, *files))


def _require(rights: Rights, path: Path, fix: str, *, is_on_the_way: bool = False) -> None:
    try:
        attributes = getattr(path.lstat(), "st_file_attributes", 0)
    except OSError as error:
        raise ServiceManagerError(f"{path}: {error.strerror}") from None
    if attributes & stat.FILE_ATTRIBUTE_REPARSE_POINT:
        raise ServiceManagerError(f"not installed: {path} is a link\nto install: {fix}")
    security = rights.security(path)
    if (sid := who_else(security, is_on_the_way=is_on_the_way)) is not None:
        does = "belongs to" if sid == security.owner else "may be changed by"
        raise ServiceManagerError(
            f"not installed: {path} {does} {rights.name_of(sid)}, and the service trusts it\n"
            f"to install: {fix}"
        )
