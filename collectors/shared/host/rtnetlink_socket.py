"""rtnetlink requests to the Linux kernel: dumps, and neighbour changes as they happen.

Neither needs privileges. All functions raise OSError if the platform has no netlink sockets or a
sandbox denies them. Nothing is sent to the network.
"""

import errno
import os
import socket
from collections.abc import Callable
from typing import TypeVar

from collectors.shared.host import rtnetlink
from collectors.shared.host.rtnetlink import LinkNeighbour, NeighbourTableSize

RTMGRP_NEIGH = 0x4
_DATAGRAM_MAX = 65536
_EVENT_BUFFER_BYTES = 1 << 20
_ANSWER_TIMEOUT_S = 2.0
_DATAGRAMS_AT_ONCE = 256

T = TypeVar("T")


def read_dump(
    message_type: int, parse: Callable[[bytes], T | None], family: int = 0
) -> tuple[T, ...]:
    """Return the parsed objects of a whole dump (RTM_GETLINK, _GETADDR, _GETROUTE, ...)."""
    objects: list[T | None] = []
    with _open() as opened:
        opened.settimeout(_ANSWER_TIMEOUT_S)
        opened.send(rtnetlink.dump_request(message_type, family))
        while True:
            for message in rtnetlink.parse_messages(opened.recv(_DATAGRAM_MAX)):
                if message.type == rtnetlink.NLMSG_DONE:
                    return tuple(each for each in objects if each is not None)
                if message.type == rtnetlink.NLMSG_ERROR:
                    number = rtnetlink.error_number(message)
                    raise OSError(number, os.strerror(number))
                if message.type == message_type + rtnetlink.NEW_FROM_GET:
                    objects.append(parse(message.body))


def read_neighbours(family: int = rtnetlink.AF_INET) -> tuple[LinkNeighbour, ...]:
    """Return the neighbour table of one address family."""
    return read_dump(rtnetlink.RTM_GETNEIGH, rtnetlink.parse_neighbour, family)


def read_neighbour_table_size() -> NeighbourTableSize | None:
    """Return the size of the IPv4 neighbour table.

    Unlike the sysctls, this also works in a network namespace that does not show them.
    """
    parse = rtnetlink.parse_neighbour_table_size
    return next(iter(read_dump(rtnetlink.RTM_GETNEIGHTBL, parse, rtnetlink.AF_INET)), None)


class NeighbourEvents:
    """Neighbour changes of this network namespace, as a file for a selector.

    If the kernel discards events because they are read too slowly, `read` returns the whole table
    instead.
    """

    def __init__(self) -> None:
        self._socket = _open(RTMGRP_NEIGH)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _EVENT_BUFFER_BYTES)

    def fileno(self) -> int:
        return self._socket.fileno()

    def read(self) -> tuple[LinkNeighbour, ...]:
        """Return the changes since the last call, without waiting."""
        changed: list[LinkNeighbour] = []
        try:
            for _ in range(_DATAGRAMS_AT_ONCE):
                for message in rtnetlink.parse_messages(self._socket.recv(_DATAGRAM_MAX)):
                    if message.type == rtnetlink.RTM_NEWNEIGH:
                        changed += filter(None, (rtnetlink.parse_neighbour(message.body),))
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            changed += read_neighbours()
        return tuple(changed)

    def close(self) -> None:
        self._socket.close()


def _open(groups: int = 0) -> socket.socket:
    if not hasattr(socket, "AF_NETLINK"):
        raise OSError(errno.EAFNOSUPPORT, "this platform has no rtnetlink")
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    try:
        opened.bind((0, groups))
    except OSError:
        opened.close()
        raise
    return opened
