"""Makes the kernel resolve addresses by ARP.

An empty UDP datagram to an address makes the kernel resolve its MAC. For a program without root,
there is no other way to request this. The datagram has no payload, and goes to the discard port
(RFC 863).
"""

import errno
import socket
from typing import Final

SETTLE_S: Final = 2.25
"""How long to wait for an ARP answer. The kernel sends its third and last request after 2 s."""
DISCARD_PORT: Final = 9
_SOCKETS: Final = 8
_NO_RESOURCE: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EAGAIN}


class PrimingSockets:
    """UDP sockets that send the empty datagrams. The constructor raises OSError."""

    def __init__(self) -> None:
        self._sockets = [_datagram_socket() for _ in range(_SOCKETS)]

    def prime(self, address: str) -> bool:
        """Make the kernel resolve an address. Returns False if the send queues are full."""
        for _ in range(_SOCKETS):
            self._sockets.append(self._sockets.pop(0))
            try:
                self._sockets[0].sendto(b"", (address, DISCARD_PORT))
            except OSError as error:
                # A socket queues some hundreds of datagrams whose addresses are being resolved.
                # If its queue is full, the next socket is used.
                if error.errno in _NO_RESOURCE:
                    continue
            return True  # also after any other error: the next socket would get the same error
        return False

    def close(self) -> None:
        for socket_ in self._sockets:
            socket_.close()


def _datagram_socket() -> socket.socket:
    new_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    new_socket.setblocking(False)
    return new_socket
