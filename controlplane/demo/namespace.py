"""A network namespace for this process and all that it starts from then on."""

import ctypes
import os
import sys
from pathlib import Path
from typing import Final

_CLONE_NEWUSER: Final = 0x10000000  # sched.h
_CLONE_NEWNET: Final = 0x40000000


def enter_network_namespace() -> None:
    """Leave this machine's network for an empty one, for good. Raises OSError.

    Without the right to do so a user namespace gives it, in which this user stays who it is, and
    what is executed there has no more rights than before. There must be no second thread.
    """
    if sys.platform != "linux":
        raise OSError(f"{sys.platform} has no network namespaces")
    uid, gid = os.geteuid(), os.getegid()
    try:
        _unshare(_CLONE_NEWNET)
    except PermissionError:
        _unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
        Path("/proc/self/setgroups").write_text("deny", "ascii")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1", "ascii")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1", "ascii")


def _unshare(flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"no network namespace: {os.strerror(number)}")
