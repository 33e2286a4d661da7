"""The processor priority and the memory limit of a collector's process.

The process sets both for itself before any collector is imported, and its children inherit them. A
collection that needs more memory ends with a MemoryError, which is reported as a crash. The facts
of its last checkpoint are still used.
"""

import contextlib
import os
import sys
from typing import Final

MEMORY_MAX_BYTES: Final = 512 * 2**20
"""Ten times the memory that a scan of a thousand hosts needs."""
NICENESS: Final = 5
"""The increment for nice(2), so that the venue's own programs take precedence. The collector still
meets its deadlines on a busy machine."""


def limit_this_process(memory_max_bytes: int = MEMORY_MAX_BYTES) -> None:
    """Lower this process's priority and limit its memory, if the system can.

    On Linux RLIMIT_DATA counts private writable memory (getrlimit(2)). It does not count mapped
    files, which are a large part of an interpreter with libraries. macOS accepts the limit but does
    not enforce it. On Windows this function does nothing: the parent starts the child with a low
    priority class, and memory is not limited.
    """
    if sys.platform == "win32":
        return
    import resource  # not on Windows

    # The sandbox of a system service may refuse both calls. Such a service has limits of its own.
    with contextlib.suppress(PermissionError):
        os.nice(NICENESS)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = memory_max_bytes if hard == resource.RLIM_INFINITY else min(memory_max_bytes, hard)
    with contextlib.suppress(PermissionError):
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
