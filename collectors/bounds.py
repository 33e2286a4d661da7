"""What a collector's process may take of the machine: little of the processor, so much memory.

The process sets its own bounds before any collector is imported, and its children inherit them. A
collection that needs more ends with a MemoryError, reported as a crash: its last checkpoint still
counts.
"""

import contextlib
import os
import sys
from typing import Final

MEMORY_MAX_BYTES: Final = 512 * 2**20
"""Ten times what a scan of a thousand hosts takes."""
NICENESS: Final = 5
"""The venue's own programs come first; deadlines are still met on a busy machine."""


def bind_this_process(memory_max_bytes: int = MEMORY_MAX_BYTES) -> None:
    """Lower this process's priority and bound its memory, where the system can.

    On Linux RLIMIT_DATA counts private writable memory (getrlimit(2)), not mapped files, of which
    an interpreter with libraries has much. macOS accepts the limit and does not enforce it;
    Windows has neither here: there the parent starts the child with a low priority class.
    """
    if sys.platform == "win32":
        return
    import resource  # not on Windows

    # A service's sandbox may refuse both, and bounds the whole service in its own way then.
    with contextlib.suppress(PermissionError):
        os.nice(NICENESS)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = memory_max_bytes if hard == resource.RLIM_INFINITY else min(memory_max_bytes, hard)
    with contextlib.suppress(PermissionError):
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
