"""rtnetlink requests to the Linux kernel: dumps, and neighbour changes as they happen.

Neither needs privileges. All functions raise OSError if the platform has no netlink sockets or a
sandbox denies them. Nothing is sent to the network.
"""

import errno
import socket
from collections.abc import Callable
from typing import TypeVar

from collectors.shared.linux import rtnetlink
from collectors.shared.linux.netlink import parse_messages
from collectors.shared.linux.netlink_socket import NETLINK_ROUTE, dump, open_netlink
from collectors.shared.linux.rtnetlink import LinkNeighbour, NeighbourTableSize

RTMGRP_NEIGH = 0x4
_DATAGRAM_MAX = 65536
_EVENT_BUFFER_BYTES = 1 << 20
_DATAGRAMS_AT_ONCE = 256

T = TypeVar("T")


def read_dump(
    message_type: int, parse: Callable[[bytes], T | None], family: int = 0
) -> tuple[T, ...]:
    """Return the parsed objects of a whole dump (RTM_GETLINK, _GETADDR, _GETROUTE, ...).

    ``family`` 0 is all families.
    """
    request = bytes((family, 0, 0, 0))  # struct rtgenmsg, padded
    with open_netlink(NETLINK_ROUTE) as connection:
        bodies = dump(connection, message_type, request, message_type + rtnetlink.NEW_FROM_GET)
    return tuple(message for message in map(parse, bodies) if message is not None)


def read_neighbours(family: int = rtnetlink.AF_INET) -> tuple[LinkNeighbour, ...]:
    """Return the neighbour table of one address family."""
    return read_dump(rtnetlink.RTM_GETNEIGH, rtnetlink.parse_neighbour, family)


def read_neighbour_table_size() -> NeighbourTableSize | None:
    """Return the size of the IPv4 neighbour table.

    This also works in a network namespace that does not show the sysctls of the table.
    """
    parse = rtnetlink.parse_neighbour_table_size
    return next(iter(read_dump(rtnetlink.RTM_GETNEIGHTBL, parse, rtnetlink.AF_INET)), None)


class NeighbourEvents:
    """Reads changes of this network namespace's neighbour table. A selector can wait for them.

    If the kernel discards events because they are read too slowly, `read` also returns the whole
    IPv4 table.
    """

    def __init__(self) -> None:
        self._socket = open_netlink(NETLINK_ROUTE, RTMGRP_NEIGH)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _EVENT_BUFFER_BYTES)

    def fileno(self) -> int:
        return self._socket.fileno()

    def read(self) -> tuple[LinkNeighbour, ...]:
        """Return the new and changed entries since the last call, without waiting."""
        changes: list[LinkNeighbour] = []
        try:
            for _ in range(_DATAGRAMS_AT_ONCE):
                for message in parse_messages(self._socket.recv(_DATAGRAM_MAX)):
                    if message.type == rtnetlink.RTM_NEWNEIGH:
                        changes += filter(None, (rtnetlink.parse_neighbour(message.body),))
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            changes += read_neighbours()
        return tuple(changes)

    def close(self) -> None:
        self._socket.close()
