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

MAPPINGS: Final = Path("/proc/self/smaps")
MADV_DONTNEED: Final = 4
"""madvise(2); the same number on every architecture that Python runs on but alpha."""
_UNCHANGED: Final = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) r-[-x]p .* /.*\n(?:[A-Z]\w+:.*\n)*?Anonymous: +0 kB$", re.MULTILINE
)
"""An entry of proc_pid_smaps(5): addresses, rights, offset, device, inode, file; then its figures.
Anonymous are pages that differ from the file, as those that the linker wrote to before."""


def settle() -> None:
    """Take what is loaded now as lasting: collect once, look at it no more, return the rest."""
    gc.collect()
    gc.freeze()
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    # Code and constants that only the start used stay mapped, and the kernel spares mapped code
    # longer than anything else. Unmapped, they are page cache like any other; what is used comes
    # back unread.
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for start, end in _unchanged():
        libc.madvise(start, end - start, MADV_DONTNEED)
    # What glibc keeps free inside its heap is some megabytes after the imports (malloc_trim(3));
    # other C libraries have no such call and need none.
    trim = getattr(libc, "malloc_trim", None)
    if trim is not None:
        trim(0)


def _unchanged() -> Iterator[tuple[int, int]]:
    """Yield the addresses of read-only pages that are as in their files: nothing can be lost."""
    try:
        mappings = MAPPINGS.read_text("utf-8", "replace")
    except OSError:
        return
    for start, end in _UNCHANGED.findall(mappings):
        yield int(start, 16), int(end, 16)
