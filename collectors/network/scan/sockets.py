"""The sockets of the scan: UDP sockets for address resolution, and TCP connections.

A TCP connection tests whether a port is open. The scan never sends payload: the UDP datagrams are
empty. It ends a TCP connection with RST (SO_LINGER 0), so that a device that accepts one connection
at a time accepts the next one at once. One thread waits for all sockets with one selector (epoll on
Linux).
"""

import contextlib
import ctypes
import errno
import selectors
import socket
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from collectors.network.scan.host_probes import ConnectOutcome
from collectors.shared.arp.priming import PrimingSockets
from collectors.shared.linux.rtnetlink import LinkNeighbour
from collectors.shared.linux.rtnetlink_socket import NeighbourEvents, read_neighbours
from collectors.shared.tcp_refusal import report_refusal_at_once

SOCKETS_MAX = 480
"""Maximum number of simultaneous connections. On Windows, select() accepts at most 512 sockets."""
_LINGER_NONE = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
_UNSPECIFIED = struct.pack("=H14x", socket.AF_UNSPEC)  # struct sockaddr
_TCP_INFO_BYTES = 104
_TCPI_RTT = struct.Struct("=68xI")  # linux/tcp.h: tcpi_rtt in microseconds

# On Windows, SO_ERROR and connect_ex return the numbers of Winsock: 10061 is WSAECONNREFUSED, and
# 10035 is WSAEWOULDBLOCK.
_REFUSED = {errno.ECONNREFUSED, errno.ECONNRESET, 10061}
_PENDING = {errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EALREADY, 10035}


@dataclass(frozen=True, slots=True)
class ConnectResult:
    """The result of one connection attempt.

    ``latency_ms`` is the round-trip time that the kernel measured, or None if it measured none.
    """

    address: str
    port: int
    outcome: ConnectOutcome
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True)
class NetworkEvents:
    """What `ScanNetwork.wait` received: neighbour changes, and connection attempts that have
    ended."""

    neighbours: tuple[LinkNeighbour, ...] = ()
    contacts: tuple[ConnectResult, ...] = ()


class ScanNetwork(Protocol):
    """The network operations and the clock that a sweep uses."""

    def now(self) -> float:
        """Return the time of a monotonic clock in seconds."""

    def known_neighbours(self) -> Sequence[LinkNeighbour]: ...

    def prime(self, address: str) -> bool:
        """Make the kernel resolve an address. Returns False if the send queues are full."""

    def connect(self, address: str, port: int) -> bool:
        """Start a connection. Returns False if no socket is available."""

    def take(self, address: str, port: int) -> socket.socket | None:
        """Return an open connection, which the caller then owns and closes.

        Returns None if no connection to the port is open.
        """

    def drop(self, address: str, port: int) -> None:
        """Reset all connections to a port, both open ones and attempts."""

    def wait(self, timeout_s: float) -> NetworkEvents: ...


class SocketNetwork:
    """The real network.

    With ``watch_neighbours`` the constructor raises OSError if the system denies neighbour events.

    ``_sockets`` has the connection attempts that have not ended. ``_opened`` has the open
    connections that were neither taken nor dropped. ``_ended`` has the results of attempts that
    ended within `connect`.
    """

    def __init__(self, *, watch_neighbours: bool) -> None:
        self._events = NeighbourEvents() if watch_neighbours else None
        self._selector = selectors.DefaultSelector()
        self._sockets: dict[tuple[str, int], list[socket.socket]] = {}
        self._priming = PrimingSockets()
        self._opened: dict[tuple[str, int], socket.socket] = {}
        self._ended: list[ConnectResult] = []
        self._wake_sender, self._wake_receiver = socket.socketpair()
        self._wake_receiver.setblocking(False)
        self._wake_sender.setblocking(False)
        self._selector.register(self._wake_receiver, selectors.EVENT_READ)
        if self._events is not None:
            self._selector.register(self._events, selectors.EVENT_READ)

    def now(self) -> float:
        return time.monotonic()

    def known_neighbours(self) -> Sequence[LinkNeighbour]:
        return read_neighbours() if self._events is not None else ()

    def prime(self, address: str) -> bool:
        return self._priming.prime(address)

    def connect(self, address: str, port: int) -> bool:
        try:
            connection = _stream_socket(address)
        except OSError:
            return False
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
        report_refusal_at_once(connection)
        try:
            error_number = connection.connect_ex((address, port))
        except PermissionError:
            error_number = errno.EPERM
        if error_number in _PENDING:
            self._sockets.setdefault((address, port), []).append(connection)
            self._selector.register(connection, selectors.EVENT_WRITE, (address, port))
            return True
        self._ended.append(_connect_result(connection, address, port, error_number))
        _reset(connection)
        return True

    def take(self, address: str, port: int) -> socket.socket | None:
        return self._opened.pop((address, port), None)

    def drop(self, address: str, port: int) -> None:
        if connection := self.take(address, port):
            _reset(connection)
        for connection in self._sockets.pop((address, port), ()):
            self._selector.unregister(connection)
            _reset(connection)

    def wait(self, timeout_s: float) -> NetworkEvents:
        ended, self._ended = self._ended, []
        neighbours: tuple[LinkNeighbour, ...] = ()
        for key, _ in self._selector.select(0 if ended else timeout_s):
            if key.fileobj is self._wake_receiver:
                self._wake_receiver.recv(64)
            elif key.data is None and self._events is not None:
                neighbours += self._events.read()
            elif isinstance(key.fileobj, socket.socket):
                ended.append(self._finish(key.fileobj, *key.data))
        return NetworkEvents(neighbours, tuple(ended))

    def wake(self) -> None:
        """End `wait` at once. This method can be called from another thread."""
        with contextlib.suppress(OSError):
            self._wake_sender.send(b"!")

    def close(self) -> None:
        for address, port in (*self._sockets, *self._opened):
            self.drop(address, port)
        for connection in (self._priming, self._wake_sender, self._wake_receiver):
            connection.close()
        if self._events is not None:
            self._events.close()
        self._selector.close()

    def _finish(self, connection: socket.socket, address: str, port: int) -> ConnectResult:
        error_number = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        result = _connect_result(connection, address, port, error_number)
        self._selector.unregister(connection)
        if result.outcome == "open" and (address, port) not in self._opened:
            self._opened[address, port] = connection
        else:
            _reset(connection)
        self._sockets[address, port].remove(connection)
        return result


def _reset(connection: socket.socket) -> None:
    """End a connection now. On Linux, connect(2) with AF_UNSPEC resets it before it is closed.

    close(2) alone is not enough while another thread starts a program: the new process has a copy
    of the descriptor until it calls exec, and that copy keeps the connection open.
    """
    if sys.platform == "linux":
        _libc().connect(connection.fileno(), _UNSPECIFIED, len(_UNSPECIFIED))
    connection.close()


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def parse_rtt_ms(tcp_info: bytes) -> float | None:
    """Return the round-trip time from Linux's ``struct tcp_info``, or None if it has none."""
    if len(tcp_info) < _TCPI_RTT.size:
        return None
    (microseconds,) = _TCPI_RTT.unpack_from(tcp_info)
    return microseconds / 1000 if microseconds else None


def _connect_result(
    connection: socket.socket, address: str, port: int, error_number: int
) -> ConnectResult:
    if error_number == 0:
        return ConnectResult(address, port, "open", _latency_ms(connection))
    return ConnectResult(address, port, "refused" if error_number in _REFUSED else "unreachable")


def _latency_ms(connection: socket.socket) -> float | None:
    if sys.platform != "linux":
        return None
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    except OSError:
        return None
    return parse_rtt_ms(info)


def _stream_socket(address: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # asyncio sets TCP_NODELAY only on sockets that were created with the protocol IPPROTO_TCP.
    return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
