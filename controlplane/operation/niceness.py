"""Lowers the priority of threads and processes, so that their work does not delay other calls."""

import contextlib
import os
import sys
from typing import Final

NICENESS: Final = 10


def lower_priority() -> None:
    """Lower the priority of the calling thread on Linux, and of the process on macOS.

    On Windows, or if a sandbox refuses this (setpriority(2)), the priority is unchanged.
    """
    if sys.platform != "win32":
        with contextlib.suppress(PermissionError):
            os.nice(NICENESS)
