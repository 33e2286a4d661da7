"""The HTTP/1.1 protocol of uvicorn, with limits for requests that are not admitted yet.

The caller is unknown until the head of a request has arrived. Therefore the head must arrive soon
and be small. The number of connections that wait for a head is limited: beyond the limit, the
connection that has waited longest is closed.
"""

import asyncio
from collections import OrderedDict
from http import HTTPStatus
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_TIMEOUT_S = 10
HEAD_MAX_BYTES = 65_536
DISCARDED_MAX_BYTES = 4 * 1024 * 1024
"""Up to this size, the rest of a refused body is read and discarded. If the connection were closed
at once, it would be reset, and the caller or a proxy would lose the reply."""
AWAITED_MAX = 2048


class Awaited:
    """The connections of a service that wait for the head of a request, oldest first."""

    def __init__(self, limit: int = AWAITED_MAX) -> None:
        self._limit = limit
        self._connections: OrderedDict[BoundedProtocol, None] = OrderedDict()

    def add(self, connection: "BoundedProtocol") -> None:
        self._connections[connection] = None
        if len(self._connections) > self._limit:
            oldest, _ = self._connections.popitem(last=False)
            oldest.give_up()

    def discard(self, connection: "BoundedProtocol") -> None:
        self._connections.pop(connection, None)


class BoundedProtocol(HttpToolsProtocol):
    """One connection. `bounded_protocol` returns a separate subclass for each service."""

    awaited: ClassVar[Awaited]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._late: asyncio.TimerHandle | None = None
        self._awaited_bytes = 0
        self._awaited_max_bytes = HEAD_MAX_BYTES

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        self._awaited_bytes += len(data)
        super().data_received(data)
        if self._late is not None and self._awaited_bytes > self._awaited_max_bytes:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and not self.pipeline and self._late is None:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def give_up(self) -> None:
        """Close the connection, because too many connections wait for a head."""
        self._stop_waiting()
        self.transport.abort()

    def _await_head(self) -> None:
        self._awaited_bytes = 0
        has_more_body = self.cycle is not None and self.cycle.more_body
        self._awaited_max_bytes = HEAD_MAX_BYTES + (DISCARDED_MAX_BYTES if has_more_body else 0)
        self._late = self.loop.call_later(HEAD_TIMEOUT_S, self._refuse, HTTPStatus.REQUEST_TIMEOUT)
        self.awaited.add(self)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
            self.awaited.discard(self)

    def _refuse(self, status: HTTPStatus) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\nConnection: close\r\n"
            self.transport.write(f"{head}Content-Length: 0\r\n\r\n".encode())
            self.transport.close()


def bounded_protocol(limit: int = AWAITED_MAX) -> type[BoundedProtocol]:
    """Return a protocol class for one service. Its connections share one limit."""
    return type("ServiceProtocol", (BoundedProtocol,), {"awaited": Awaited(limit)})
