"""Brings up the loopback device of a new network namespace, then executes another program.

    unshare --map-root-user --net python -I tests/lab/loopback.py COMMAND [ARGUMENT ...]

In a new namespace, the loopback device is down, and not every machine has the command `ip`.
"""

import fcntl
import os
import socket
import struct
import sys

_SIOCSIFFLAGS = 0x8914  # netdevice(7)
_IFF_UP = 0x1


def bring_up_loopback() -> None:
    """Set IFF_UP on `lo`. Raises OSError if this process lacks the right."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


if __name__ == "__main__":
    bring_up_loopback()
    os.execvp(sys.argv[1], sys.argv[1:])
