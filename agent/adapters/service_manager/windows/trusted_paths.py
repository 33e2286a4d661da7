"""Checks who can change the files of a service that runs as SYSTEM.

A file is accepted only if nobody except SYSTEM, the administrators and TrustedInstaller can change
it.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agent.adapters.service_manager.contract import ServiceManagerError
from agent.adapters.service_manager.windows.api import Win32ServiceControl
from agent.adapters.service_manager.windows.rights import untrusted_account

_REINSTALL: Final = "unpack the agent as an administrator into C:\\Program Files, and install again"


def prepare_directory(control: Win32ServiceControl, home: Path) -> None:
    """Create the directory of configuration, key and state, or reuse an existing directory.

    Raises ServiceManagerError if other users can change the existing directory, or replace a
    directory above it. Such a user might have created files there: an identity, or a configuration
    that connects the agent to the user's own server.
    """
    for parent in home.parents:
        _require_trusted(control, parent, is_parent=True)
    if not os.path.lexists(home):
        control.create_protected(home)
        return
    fix = f"check the content of {home}, move that directory away, and install again"
    for path in _walk(home):
        _require_trusted(control, path, fix)
    control.protect(home)


def require_safe_program(control: Win32ServiceControl, program: Path) -> None:
    """Raise ServiceManagerError if other users can change the program or its directory."""
    directory = program.parent
    for parent in directory.parents:
        _require_trusted(control, parent, _REINSTALL, is_parent=True)
    for path in _walk(directory):
        _require_trusted(control, path, _REINSTALL)


def _walk(directory: Path) -> Iterator[Path]:
    yield directory
    for parent, folders, files in os.walk(directory):
        yield from (Path(parent, name) for name in (*folders, *files))


def _require_trusted(
    control: Win32ServiceControl, path: Path, fix: str = "", *, is_parent: bool = False
) -> None:
    """Raise ServiceManagerError if ``path`` is a link or other users can change it.

    Args:
        fix: what to do about the problem. By default, the message describes how to fix ``path``
            itself.
        is_parent: ``path`` is a directory above the files of the service.
    """
    try:
        attributes = getattr(path.lstat(), "st_file_attributes", 0)
    except OSError as error:
        raise ServiceManagerError(f"{path}: {error.strerror}") from None
    if attributes & stat.FILE_ATTRIBUTE_REPARSE_POINT:
        fix = fix or f"replace {path} with a directory, and install again"
        raise ServiceManagerError(f"not installed: {path} is a link\nto install: {fix}")
    security = control.security(path)
    if (sid := untrusted_account(security, is_parent=is_parent)) is not None:
        account = control.name_of(sid)
        if sid == security.owner:
            weakness = f"belongs to {account}"
            fix = fix or f"make the Administrators group the owner of {path}, and install again"
        else:
            weakness = f"may be changed by {account}"
            rights = f"the write and delete access of {account} to {path}"
            fix = fix or f"remove {rights}, and install again"
        raise ServiceManagerError(
            f"not installed: {path} {weakness}. A service that runs as SYSTEM must not use files"
            f" that other accounts can change.\nto install: {fix}"
        )
