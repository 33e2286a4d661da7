"""Lowers the priority of threads and processes, so that their work does not delay other calls."""

import contextlib
import os
import sys
from typing import Final

NICENESS: Final = 10


def lower_priority() -> None:
    """Lower the priority of the calling thread on Linux, and of the process on other systems.

    If a sandbox refuses this, the priority is unchanged (setpriority(2)).
    """
    if sys.platform != "win32":
        with contextlib.suppress(PermissionError):
            os.nice(NICENESS)
