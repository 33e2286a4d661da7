"""Sends netlink requests to the Linux kernel. Nothing is sent to the network.

The dumps need no privileges. All functions raise OSError if the platform has no netlink sockets or
a sandbox denies them.
"""

import errno
import os
import socket

from collectors.shared.linux.netlink import (
    NLMSG_DONE,
    NLMSG_ERROR,
    dump_message,
    error_number,
    parse_messages,
)

NETLINK_ROUTE = 0
NETLINK_GENERIC = 16

_DATAGRAM_MAX = 65536
_ANSWER_TIMEOUT_S = 2.0


def open_netlink(protocol: int, groups: int = 0) -> socket.socket:
    if not hasattr(socket, "AF_NETLINK"):
        raise OSError(errno.EAFNOSUPPORT, "this platform has no netlink")
    connection = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
    try:
        connection.bind((0, groups))
    except OSError:
        connection.close()
        raise
    connection.settimeout(_ANSWER_TIMEOUT_S)
    return connection


def dump(
    connection: socket.socket, message_type: int, body: bytes, answer_type: int
) -> list[bytes]:
    """Request a dump, and return the bodies of its messages of the type ``answer_type``."""
    connection.send(dump_message(message_type, body))
    bodies: list[bytes] = []
    while True:
        for message in parse_messages(connection.recv(_DATAGRAM_MAX)):
            if message.type == NLMSG_DONE:
                return bodies
            if message.type == NLMSG_ERROR:
                number = error_number(message)
                raise OSError(number, os.strerror(number))
            if message.type == answer_type:
                bodies.append(message.body)
