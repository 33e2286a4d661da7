"""The HTTP/1.1 protocol of uvicorn, with limits for connections that wait for their client.

A client owes something as long as the service waits for it to send the head of a request, to send
the rest of the body, or to read a reply. Until the head has arrived, the caller is unknown and its
own limits cannot apply. Therefore the head must arrive soon and be small. The number of connections
whose clients owe something is limited, in total and for each network. Beyond a limit, the
connection that has waited longest is closed. A connection is also closed if its client reads
nothing for a while, or sends a third request before the reply to the first.
"""

import asyncio
import logging
import socket
import struct
import sys
from collections import OrderedDict
from collections.abc import Iterable, Set
from contextlib import suppress
from http import HTTPStatus
from typing import Any, ClassVar, Final

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from controlplane.accounts.throttle import network_of
from controlplane.settings import Settings

HEAD_TIMEOUT_S = 10
HEAD_MAX_BYTES = 65_536
DISCARDED_MAX_BYTES = 4 * 1024 * 1024
"""Up to this size, the rest of a refused body is read and discarded. If the connection were closed
at once, it would be reset, and the caller or a proxy would lose the reply."""
PIPELINED_MAX = 1
"""Maximum number of requests of a connection that wait for the reply to an earlier request. If
more arrive, the service replies to the requests before them, and then closes the connection. The
client can send the unanswered requests again (RFC 9112, section 9.3.2)."""
BODY_AWAITED_S = 5
"""How long a request waits for its body before the application handles it. If many clients send
slow bodies, the limits of `AwaitedConnections` close most of the connections during this wait, and
the application never handles their requests. The wait applies only to bodies that uvicorn reads
before the application asks for them."""
ADDRESS_MAX: Final = 64
"""Maximum length of an address in ``X-Forwarded-For``. Longer texts are cut off."""
_SILENT: Final = logging.Logger("silent", logging.CRITICAL)
_RESET: Final = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
"""The value of SO_LINGER that resets a connection when it is closed: on, with 0 seconds."""


def client_address(
    peer: str, headers: Iterable[tuple[bytes, bytes]], trusted_proxies: Set[str]
) -> str:
    """Return the IP address of the client that sent a request.

    If a trusted proxy forwarded the request, this is the last address in ``X-Forwarded-For``. Only
    this address was added by the proxy. The client may have sent all addresses before it.

    Args:
        peer: address of the other end of the connection.
        headers: headers of the request, with names in lower case.
    """
    # A socket for IPv4 and IPv6 reports an IPv4 address as ::ffff:192.0.2.1.
    peer = peer.removeprefix("::ffff:")
    if peer not in trusted_proxies:
        return peer
    forwarded_for = b",".join(value for name, value in headers if name == b"x-forwarded-for")
    return forwarded_for.rpartition(b",")[2].strip().decode("latin-1")[:ADDRESS_MAX] or peer


class AwaitedConnections:
    """The connections of a service whose clients owe something, oldest first.

    Args:
        limit: maximum number of these connections.
        network_limit: maximum number of these connections from one network.
    """

    def __init__(self, limit: int, network_limit: int) -> None:
        self._limit = limit
        self._network_limit = network_limit
        self._connections: OrderedDict[BoundedProtocol, str | None] = OrderedDict()
        self._by_network: dict[str | None, OrderedDict[BoundedProtocol, None]] = {}

    def add(self, connection: "BoundedProtocol", network: str | None) -> None:
        """Add a connection as the newest. ``network`` is None if it is unknown."""
        self._connections[connection] = network
        network_connections = self._by_network.setdefault(network, OrderedDict())
        network_connections[connection] = None
        if network is not None and len(network_connections) > self._network_limit:
            next(iter(network_connections)).give_up()
        elif len(self._connections) > self._limit:
            next(iter(self._connections)).give_up()

    def discard(self, connection: "BoundedProtocol") -> None:
        if connection in self._connections:
            network = self._connections.pop(connection)
            network_connections = self._by_network[network]
            del network_connections[connection]
            if not network_connections:
                del self._by_network[network]


class BoundedProtocol(HttpToolsProtocol):
    """One connection. `bounded_protocol` returns a separate subclass for each service."""

    awaited: ClassVar[AwaitedConnections]
    settings: ClassVar[Settings]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._head_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None
        self._unread_bytes = 0
        """Size of the replies that the client had not read when `_read_timer` was started."""
        self._awaited_bytes = 0
        """Bytes received since the service began to wait for a head."""
        self._awaited_max_bytes = HEAD_MAX_BYTES
        self._is_awaited = False
        self._unstarted: tuple[Any, Any] | None = None
        """The request that waits for its body, with the application that will handle it."""
        self._start_timer: asyncio.TimerHandle | None = None
        self._has_pipelined_too_many = False
        self._running: Any = None
        """The request that the application handles, as uvicorn's ``RequestResponseCycle``."""
        self._peer = ""
        self._peer_network: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        # With this limit, `pause_writing` is called as soon as the system accepts no more bytes.
        transport.set_write_buffer_limits(high=0)
        super().connection_made(transport)
        self._peer = client_address(self.client[0] if self.client else "", (), frozenset())
        if self._peer and self._peer not in self.settings.trusted_proxies:
            self._peer_network = network_of(self._peer)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        if self._has_pipelined_too_many:
            return
        self._awaited_bytes += len(data)
        super().data_received(data)
        self._limit_wait_for_body()
        if self._head_timer is None:
            self._update_awaited()
        elif self._awaited_bytes > self._awaited_max_bytes:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= PIPELINED_MAX:
            self._has_pipelined_too_many = True
            self.logger = _SILENT  # uvicorn would log that the request is invalid.
            self.cycle.keep_alive = False  # Close after the reply to the newest request.
            raise OverflowError  # It ends the parsing of the data.
        super().on_message_begin()

    def send_400_response(self, msg: str) -> None:
        if not self._has_pipelined_too_many:
            super().send_400_response(msg)

    def on_headers_complete(self) -> None:
        self._stop_awaiting_head()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._start_waiting_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._limit_wait_for_body()
        if not self.transport.is_closing() and not self.pipeline and self._head_timer is None:
            self._await_head()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_read()

    def resume_writing(self) -> None:
        self._stop_awaiting_read()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_awaiting_read()
        self._stop_awaiting_head()
        self._limit_unread_replies()
        self._stop_waiting_for_body()
        # uvicorn reports the disconnection only to the newest request, which may not have begun.
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

    def give_up(self) -> None:
        """Reset the connection.

        This is called if too many clients owe something, or if this client has owed something for
        too long.
        """
        self._stop_awaiting_read()
        self._stop_awaiting_head()
        # Without a reset, the system would keep the data that the client does not read.
        if (connection := self.transport.get_extra_info("socket")) is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.transport.abort()

    def _limit_unread_replies(self) -> None:
        """Limit how long the system keeps replies that the client of a closed connection does not
        read.
        """
        connection = self.transport.get_extra_info("socket")
        if connection is not None and sys.platform == "linux":
            timeout_ms = int(self.settings.write_timeout_s * 1000)
            with suppress(OSError):  # the client has reset the connection
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, timeout_ms)

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        is_whole = not cycle.more_body
        if is_whole or cycle.waiting_for_100_continue or not _has_short_body(cycle.scope):
            super()._start_asgi_task(cycle, app)
        else:
            self._unstarted = cycle, app

    def _limit_wait_for_body(self) -> None:
        if self._unstarted is not None and self._start_timer is None:
            self._start_timer = self.loop.call_later(BODY_AWAITED_S, self._start_waiting_request)

    def _start_waiting_request(self) -> None:
        if self._unstarted is not None:
            cycle, app = self._unstarted
            self._stop_waiting_for_body()
            super()._start_asgi_task(cycle, app)

    def _stop_waiting_for_body(self) -> None:
        self._unstarted = None
        if self._start_timer is not None:
            self._start_timer.cancel()
            self._start_timer = None

    def _await_head(self) -> None:
        self._awaited_bytes = 0
        has_more_body = self.cycle is not None and self.cycle.more_body
        self._awaited_max_bytes = HEAD_MAX_BYTES + (DISCARDED_MAX_BYTES if has_more_body else 0)
        self._head_timer = self.loop.call_later(
            HEAD_TIMEOUT_S, self._refuse, HTTPStatus.REQUEST_TIMEOUT
        )
        self._update_awaited()

    def _stop_awaiting_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        self._forget()

    def _await_read(self) -> None:
        self._unread_bytes = self.transport.get_write_buffer_size()
        timeout_s = self.settings.write_timeout_s
        self._read_timer = self.loop.call_later(timeout_s, self._require_read)
        self._update_awaited()

    def _require_read(self) -> None:
        """Close the connection if the client has read nothing during the timeout."""
        if self.transport.get_write_buffer_size() < self._unread_bytes:
            self._await_read()
        else:
            self.give_up()

    def _stop_awaiting_read(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None
            self._update_awaited()

    def _update_awaited(self) -> None:
        """Add the connection to `awaited` if its client owes something. Otherwise remove it."""
        request = self.cycle
        owes_body = request is not None and request.more_body and not request.response_complete
        if self._head_timer is None and self._read_timer is None and not owes_body:
            self._forget()
        elif not self._is_awaited:
            self._is_awaited = True
            self.awaited.add(self, self._network())

    def _forget(self) -> None:
        if self._is_awaited:
            self._is_awaited = False
            self.awaited.discard(self)

    def _network(self) -> str | None:
        """Return the network of the client. It is unknown before a proxy has sent a head."""
        if self._peer_network is not None or self._head_timer is not None:
            return self._peer_network
        proxies = self.settings.trusted_proxies
        address = client_address(self._peer, self.cycle.scope["headers"], proxies)
        return network_of(address) if address and address not in proxies else None

    def _refuse(self, status: HTTPStatus) -> None:
        self._stop_awaiting_head()
        if not self.transport.is_closing():
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\nConnection: close\r\n"
            self.transport.write(f"{head}Content-Length: 0\r\n\r\n".encode())
            self.transport.close()


def _has_short_body(scope: Any) -> bool:
    """Return whether uvicorn reads the whole body before the application asks for it."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) <= HIGH_WATER_LIMIT
        if name == b"transfer-encoding":
            return False
    return True


def bounded_protocol(settings: Settings) -> type[BoundedProtocol]:
    """Return a protocol class for one service. Its connections share the limits."""
    awaited = AwaitedConnections(settings.awaited_max, settings.network_awaited_max)
    return type("ServiceProtocol", (BoundedProtocol,), {"awaited": awaited, "settings": settings})
