"""Asking the Linux kernel over rtnetlink: dumps, and neighbour changes as they happen.

Both need no privilege. Everything raises OSError where the platform or a sandbox denies netlink
sockets. Nothing of this reaches the network.
"""

import errno
import os
import socket
from types import TracebackType
from typing import Self

from collectors.network.host import rtnetlink
from collectors.network.host.rtnetlink import LinkNeighbour, Message, NeighbourTableSize

RTMGRP_NEIGH = 0x4
_DATAGRAM_MAX = 65536
_EVENT_BUFFER_BYTES = 1 << 20
_ANSWER_TIMEOUT_S = 2.0
_DATAGRAMS_AT_ONCE = 256


def read_dump(message_type: int, family: int = 0) -> tuple[Message, ...]:
    """Return the messages of a whole dump (RTM_GETLINK, _GETADDR, _GETROUTE, _GETNEIGH)."""
    messages: list[Message] = []
    with _open() as asked:
        asked.settimeout(_ANSWER_TIMEOUT_S)
        asked.send(rtnetlink.dump_request(message_type, family, sequence=1))
        while True:
            for message in rtnetlink.parse_messages(asked.recv(_DATAGRAM_MAX)):
                if message.type == rtnetlink.NLMSG_DONE:
                    return tuple(messages)
                if message.type == rtnetlink.NLMSG_ERROR:
                    number = rtnetlink.error_number(message)
                    raise OSError(number, os.strerror(number))
                messages.append(message)


def read_neighbours(family: int = rtnetlink.AF_INET) -> tuple[LinkNeighbour, ...]:
    """Return the neighbour table of one address family."""
    bodies = (message.body for message in read_dump(rtnetlink.RTM_GETNEIGH, family))
    return tuple(entry for entry in map(rtnetlink.parse_neighbour, bodies) if entry)


def read_neighbour_table_size() -> NeighbourTableSize | None:
    """Return the size of the IPv4 neighbour table, also in a namespace without its sysctls."""
    for message in read_dump(rtnetlink.RTM_GETNEIGHTBL, rtnetlink.AF_INET):
        size = rtnetlink.parse_neighbour_table_size(message.body)
        if message.type == rtnetlink.RTM_NEWNEIGHTBL and size is not None:
            return size
    return None


class NeighbourEvents:
    """Neighbour changes of this network namespace, as a selectable file.

    When the kernel drops events because we read too slowly, the table is dumped instead.
    """

    def __init__(self) -> None:
        self._socket = _open(RTMGRP_NEIGH)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _EVENT_BUFFER_BYTES)

    def fileno(self) -> int:
        return self._socket.fileno()

    def read(self) -> tuple[LinkNeighbour, ...]:
        """Return what changed since the last call, without waiting."""
        changed: list[LinkNeighbour] = []
        try:
            for _ in range(_DATAGRAMS_AT_ONCE):
                changed += _neighbours_in(self._socket.recv(_DATAGRAM_MAX))
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            changed += read_neighbours()
        return tuple(changed)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _neighbours_in(datagram: bytes) -> list[LinkNeighbour]:
    return [
        entry
        for message in rtnetlink.parse_messages(datagram)
        if message.type == rtnetlink.RTM_NEWNEIGH
        and (entry := rtnetlink.parse_neighbour(message.body)) is not None
    ]


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
