"""Gives memory back to the machine: a daemon idles for months on what its start left behind.

On Linux only; where a step is not possible, nothing happens.
"""

import ctypes
import gc
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MAPS: Final = Path("/proc/self/maps")
MADV_DONTNEED: Final = 4
"""madvise(2); the same number on every architecture that Python runs on but alpha."""
_CODE: Final = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) r-xp .* /.*$", re.MULTILINE)
"""A line of proc_pid_maps(5): addresses, rights, offset, device, inode, file."""


def settle() -> None:
    """Take what is loaded now as lasting: collect once, look at it no more, return the rest."""
    gc.collect()
    gc.freeze()
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    # What glibc keeps free inside its heap is some megabytes after the imports (malloc_trim(3));
    # other C libraries have no such call and need none.
    trim = getattr(libc, "malloc_trim", None)
    if trim is not None:
        trim(0)
    # Machine code that only the start ran stays mapped, and the kernel spares mapped code longer
    # than anything else. Unmapped, it is page cache like any other; what runs comes back unread.
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for start, end in _code():
        libc.madvise(start, end - start, MADV_DONTNEED)


def _code() -> Iterator[tuple[int, int]]:
    """Yield the addresses of code mapped from files: read-only, so nothing in it can be lost."""
    try:
        maps = MAPS.read_text("utf-8", "replace")
    except OSError:
        return
    for start, end in _CODE.findall(maps):
        yield int(start, 16), int(end, 16)
