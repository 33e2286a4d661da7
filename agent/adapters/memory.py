"""Returns memory to the operating system when the daemon is idle.

The start of the daemon and its reports need more memory than the idle daemon. Most steps work on
Linux only; other systems skip them.
"""

import ctypes
import gc
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MAPPINGS: Final = Path("/proc/self/smaps")
MADV_DONTNEED: Final = 4
"""A constant of madvise(2). It has this value on every Linux architecture except alpha."""
_UNCHANGED_MAPPING: Final = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) r-[-x]p .* /.*\n(?:[A-Z]\w+:.*\n)*?Anonymous: +0 kB$", re.MULTILINE
)
"""Matches a read-only file mapping without anonymous pages in proc_pid_smaps(5). The first line has
addresses, rights, offset, device, inode and file. Anonymous pages differ from the file, for example
because the linker changed them, so they must not be dropped."""


def release_memory() -> None:
    """Collect garbage, exclude the remaining objects from later collections, and give free memory
    back to the operating system.
    """
    gc.collect()
    gc.freeze()
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    # Pages of code and constants that only the start used stay in memory for a long time.
    # madvise(2) removes them from the process. The kernel maps a page again when the process uses
    # it.
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for start, end in _unchanged_mappings():
        libc.madvise(start, end - start, MADV_DONTNEED)
    # After the imports, the heap of glibc contains some megabytes of free memory. malloc_trim(3)
    # returns it. Other C libraries do not have this function.
    trim = getattr(libc, "malloc_trim", None)
    if trim is not None:
        trim(0)


def _unchanged_mappings() -> Iterator[tuple[int, int]]:
    """Yield start and end of each read-only mapping whose pages equal its file."""
    try:
        mappings = MAPPINGS.read_text("utf-8", "replace")
    except OSError:
        return
    for start, end in _UNCHANGED_MAPPING.findall(mappings):
        yield int(start, 16), int(end, 16)
