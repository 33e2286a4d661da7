"""Gives memory back to the machine: a daemon idles for months on what its start left behind."""

import ctypes
import gc
import sys


def settle() -> None:
    """Take what is loaded now as lasting: collect once, look at it no more, return the rest.

    What glibc's allocator keeps free inside its heap is some megabytes after the imports
    (malloc_trim(3)); other allocators have no such call and need none.
    """
    gc.collect()
    gc.freeze()
    if sys.platform != "linux":
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
