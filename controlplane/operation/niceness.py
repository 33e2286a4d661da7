"""The lower priority of threads and processes whose work must not delay other calls."""

import contextlib
import os
import sys
from typing import Final

NICENESS: Final = 10


def lower_priority() -> None:
    """Lower the priority of this process.

    On Linux, only the priority of this thread changes (setpriority(2)). A sandbox may refuse
    the call. The work then has the usual priority.
    """
    if sys.platform != "win32":
        with contextlib.suppress(PermissionError):
            os.nice(NICENESS)
