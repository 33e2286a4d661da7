"""Whether this user may look into a state directory: what is closed must not pass for absent."""

import os
from pathlib import Path

from agent.adapters.database import NAME as DATABASE
from agent.adapters.state import LOCK_NAME
from agent.adapters.status_file import NAME as STATUS
from agent.errors import NotVisible


def is_closed(directory: Path) -> bool:
    """Tell whether the directory, or what tells of the daemon in it, is there and is closed."""
    try:
        # Read, since on Windows os.access knows nothing of rights.
        next(directory.iterdir(), None)
        files = [directory / name for name in (LOCK_NAME, STATUS, DATABASE)]
        return not all(os.access(file, os.R_OK) for file in files if file.exists())
    except PermissionError:
        return True
    except OSError:
        return False


def require_sight(directory: Path) -> None:
    """Raise NotVisible where the state directory is closed to this user."""
    if is_closed(directory):
        raise NotVisible(f"the state directory {directory} is closed to this user")
