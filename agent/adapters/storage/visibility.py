"""Checks whether this user can read a state directory.

A directory that the user cannot read must not be reported as missing.
"""

import os
from pathlib import Path

from agent.adapters.storage.database import NAME as DATABASE
from agent.adapters.storage.state import LOCK_NAME
from agent.adapters.storage.status_file import NAME as STATUS
from agent.errors import NotVisible


def is_closed(directory: Path) -> bool:
    """Return whether the directory, or one of the daemon's files in it, is not readable.

    Missing files are ignored. Returns False if the directory does not exist.
    """
    try:
        # The directory is listed, because os.access does not check access rights on Windows.
        next(directory.iterdir(), None)
        if hasattr(os, "geteuid") and directory.stat().st_uid == os.geteuid():
            # The owner can read the directory. If a file in it belongs to another user, opening
            # this file fails later, with an error of its own.
            return False
        files = [directory / name for name in (LOCK_NAME, STATUS, DATABASE)]
        existing_files = (file for file in files if file.is_file() and not file.is_symlink())
        return not all(os.access(file, os.R_OK) for file in existing_files)
    except PermissionError:
        return True
    except OSError:
        return False


def require_visible(directory: Path) -> None:
    """Raise NotVisible if this user cannot read the state directory."""
    if is_closed(directory):
        raise NotVisible(f"the state directory {directory} is closed to this user")
