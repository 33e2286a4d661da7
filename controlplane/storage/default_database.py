"""The default database file, in the user's state directory. On Linux, root uses the system's."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

ENVIRONMENT = "VENUE_CONTROL_DATABASE"
_FILE = "venue-control.db"


def default_database(environment: Mapping[str, str], *, is_root: bool | None = None) -> str:
    """Return the value of ``$VENUE_CONTROL_DATABASE``, or the path of the default file.

    The directory of the default file follows the conventions of the operating system. If
    ``is_root`` is None, the function checks whether the current user is root.
    """
    if variable := environment.get(ENVIRONMENT):
        return variable
    home = Path(environment.get("HOME") or Path.home())
    if sys.platform == "win32":
        base = Path(environment.get("LOCALAPPDATA") or home)
    elif sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    elif is_root or (is_root is None and os.geteuid() == 0):
        base = Path("/var/lib")
    else:
        base = Path(environment.get("XDG_STATE_HOME") or home / ".local" / "state")
    return str(base / "venue-control" / _FILE)
