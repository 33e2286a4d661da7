"""Runs a module in the network namespace of another process, with a given resolv.conf(5).

    python -m tests.scenario.connectivity.inside PID RESOLV_CONF MODULE [ARGUMENT ...]

Unlike nsenter(1), this starts no new program. It can therefore also run in a forked process that
has already imported MODULE.
"""

import ctypes
import os
import runpy
import sys
from pathlib import Path

_CLONE_NEWNS = 0x00020000  # unshare(2)
_MS_BIND, _MS_PRIVATE_ALL = 0x1000, 0x44000  # mount(2)


def enter(pid: int, resolv_conf: Path) -> None:
    """Enter the user and network namespaces of the process ``pid``. Replace /etc/resolv.conf for
    the calling process only. Raises OSError.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    for kind in ("user", "net"):
        path = Path(f"/proc/{pid}/ns/{kind}")
        if path.readlink() != Path(f"/proc/self/ns/{kind}").readlink():
            namespace = os.open(path, os.O_RDONLY)
            _check(libc.setns(namespace, 0))
            os.close(namespace)
    _check(libc.unshare(_CLONE_NEWNS))
    _check(libc.mount(b"none", b"/", None, _MS_PRIVATE_ALL, None))
    _check(libc.mount(os.fsencode(resolv_conf), b"/etc/resolv.conf", None, _MS_BIND, None))


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    enter(int(sys.argv[1]), Path(sys.argv[2]))
    module = sys.argv[3]
    sys.argv = sys.argv[3:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
