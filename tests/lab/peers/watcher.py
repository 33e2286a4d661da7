"""Watches a bridge for forbidden traffic.

The tests run this script in the namespace of the bridge. Usage: watcher.py INTERFACE
[EXCLUDED ...]. It prints "ready" and watches until its standard input is closed. Then it prints
the forbidden traffic, if there was any, and ends.
"""

import select
import socket
import struct
import sys
from contextlib import suppress

from tests.lab.harm import Harm

_ETH_P_ALL = 0x0003
_SOL_PACKET = 263  # linux/socket.h, not in the socket module
_PACKET_ADD_MEMBERSHIP, _PACKET_STATISTICS = 1, 6
_PACKET_MR_PROMISC = 1
_STATISTICS = struct.Struct("=II")
_SO_RCVBUFFORCE = 33
_BUFFER_BYTES = 64 * 1024 * 1024
_FRAME_MAX = 65536


def main() -> None:
    interface, harm = sys.argv[1], Harm(sys.argv[2:])
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL)) as wire:
        wire.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        wire.bind((interface, _ETH_P_ALL))
        membership = struct.pack(
            "=IHH8s", socket.if_nametoindex(interface), _PACKET_MR_PROMISC, 0, b""
        )
        wire.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, membership)
        print("ready", flush=True)
        watch(wire, harm)
        _, lost_count = _STATISTICS.unpack(
            wire.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, _STATISTICS.size)
        )
    if lost_count:
        harm.counts["frames lost before they were checked"] = lost_count
    print(harm, end="")


def watch(wire: socket.socket, harm: Harm) -> None:
    """Check each frame until standard input is closed, then the frames that are still queued."""
    while sys.stdin not in select.select([wire, sys.stdin], [], [])[0]:
        harm.check_frame(wire.recv(_FRAME_MAX))
    wire.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            harm.check_frame(wire.recv(_FRAME_MAX))


if __name__ == "__main__":
    main()
