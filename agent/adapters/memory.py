"""Returns memory that only the start needed, because the daemon then idles for months.

Most of it works on Linux only; steps that are not possible are skipped.
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
"""madvise(2); the same number on all architectures of Python except alpha."""
_UNCHANGED: Final = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) r-[-x]p .* /.*\n(?:[A-Z]\w+:.*\n)*?Anonymous: +0 kB$", re.MULTILINE
)
"""An entry of proc_pid_smaps(5): addresses, rights, offset, device, inode, file, then its figures.
Anonymous pages differ from the file, such as those that the linker changed."""


def settle() -> None:
    """Collect garbage, exclude the remaining objects from later collections, and return memory."""
    gc.collect()
    gc.freeze()
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    # Code and constants that only the start used stay mapped, and the kernel keeps mapped code for
    # long. Unmapped pages are ordinary page cache, and come back when they are used.
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for start, end in _unchanged():
        libc.madvise(start, end - start, MADV_DONTNEED)
    # After the imports, glibc keeps some megabytes free in its heap (malloc_trim(3)). Other C
    # libraries need no such call.
    trim = getattr(libc, "malloc_trim", None)
    if trim is not None:
        trim(0)


def _unchanged() -> Iterator[tuple[int, int]]:
    """Yield the addresses of read-only pages that equal their files."""
    try:
        mappings = MAPPINGS.read_text("utf-8", "replace")
    except OSError:
        return
    for start, end in _UNCHANGED.findall(mappings):
        yield int(start, 16), int(end, 16)
