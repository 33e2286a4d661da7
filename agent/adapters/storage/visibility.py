"""Whether this user may look into a state directory: what is closed must not pass for absent."""

import os
from pathlib import Path

from agent.adapters.storage.database import NAME as DATABASE
from agent.adapters.storage.state import LOCK_NAME
from agent.adapters.storage.status_file import NAME as STATUS
from agent.errors import NotVisible


def is_closed(directory: Path) -> bool:
    """Tell whether the directory, or what tells of the daemon in it, is there and is closed."""
    try:
        # Read, since on Windows os.access knows nothing of rights.
        next(directory.iterdir(), None)
        if hasattr(os, "geteuid") and directory.stat().st_uid == os.geteuid():
            return False  # a foreign file in a directory of one's own is wrong, not closed
        files = [directory / name for name in (LOCK_NAME, STATUS, DATABASE)]
        return not all(os.access(f, os.R_OK) for f in files if f.is_file() and not f.is_symlink())
    except PermissionError:
        return True
    except OSError:
        return False


def require_visible(directory: Path) -> None:
    """Raise NotVisible where the state directory is closed to this user."""
    if is_closed(directory):
        raise NotVisible(f"the state directory {directory} is closed to this user")
