"""Sends one HTTP/1.1 request and reads its reply, limited in size (RFC 9112).

h11 encodes and decodes the messages. Redirects are not followed, cookies are not stored, and
certificates are not verified. This is safe because no secret is sent and no reply is trusted.
"""

import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import h11

if TYPE_CHECKING:
    import asyncio  # only for types, because asyncio needs 4 MiB of memory

HEAD_MAX_BYTES = 32 * 1024
_READ_BYTES = 16 * 1024
_PIECE_BYTES = 1024  # h11 gets so few bytes at once because its patterns take quadratic time
_HEAD_END = re.compile(rb"\n\r?\n")
# A name (RFC 9110, section 5.6.2) and a colon. A Content-Length or Transfer-Encoding field that h11
# would refuse does not match.
_FIELD = re.compile(
    rb"(?!content-length: (?!\d{1,15}$)|transfer-encoding: (?!chunked$))[\w!#$%&'*+.^`|~-]+: ",
    re.IGNORECASE,
)


class HttpError(Exception):
    """The reply is not HTTP, or its head is too long."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request. ``headers`` are sent in addition to Host and Connection."""

    method: str
    host: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A reply. The names of ``headers`` are in lower case.

    ``is_whole`` is False if ``body`` is cut: it is too long, it is invalid at some point, or the
    host closed the connection too early.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    is_whole: bool = True

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)


def build_post_request(host: str, path: str, content_type: str, body: bytes) -> HttpRequest:
    headers = (("Content-Type", content_type), ("Content-Length", str(len(body))))
    return HttpRequest("POST", host, path, headers, body)


async def exchange(
    reader: "asyncio.StreamReader",
    writer: "asyncio.StreamWriter",
    request: HttpRequest,
    body_max: int,
) -> HttpReply:
    """Send a request and read the reply, with at most about ``body_max`` bytes of body.

    The caller limits the time. Raises HttpError, OSError.
    """
    pending = HttpExchange(request, body_max)
    writer.write(pending.request)
    await writer.drain()
    while True:
        reply = pending.receive(await reader.read(_READ_BYTES))
        if reply is not None:
            return reply


def exchange_blocking(
    connection: socket.socket, request: HttpRequest, body_max: int, require_s: Callable[[], float]
) -> HttpReply:
    """Like `exchange`, but over a blocking socket.

    ``require_s`` returns the seconds until the deadline, or raises TimeoutError.
    """
    pending = HttpExchange(request, body_max)
    connection.settimeout(require_s())
    connection.sendall(pending.request)
    while True:
        connection.settimeout(require_s())
        reply = pending.receive(connection.recv(_READ_BYTES))
        if reply is not None:
            return reply


class HttpExchange:
    """The bytes of a request, and the received part of its reply. Does no input or output."""

    def __init__(self, request: HttpRequest, body_max: int) -> None:
        self._bytes_left = HEAD_MAX_BYTES + body_max
        self._response: h11.Response | None = None
        self._is_whole = False
        self._unread = bytearray()
        self._body = bytearray()
        self._connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=_PIECE_BYTES)
        headers = [("Host", request.host), ("Connection", "close"), *request.headers]
        start = h11.Request(method=request.method, target=request.path, headers=headers)
        events = (start, h11.Data(data=request.body), h11.EndOfMessage())
        self.request = b"".join(self._connection.send(event) for event in events)

    def receive(self, data: bytes) -> HttpReply | None:
        """Process received bytes. Empty ``data`` means that the host closed the connection.

        Returns the reply when it is complete, else None. If a reply ends too early or becomes
        invalid, the part before that is returned. Raises HttpError if the bytes are not a reply.
        """
        self._bytes_left -= len(data)
        self._unread += data
        is_over = not data or self._bytes_left <= 0
        try:
            self._read(is_end=not data)
        except h11.RemoteProtocolError as error:
            if data and not self._body:
                raise HttpError("the reply is not HTTP") from error
            is_over = True
        if self._response is None:
            if is_over or len(self._unread) > HEAD_MAX_BYTES:
                raise HttpError("no HTTP head was received")
            return None
        if not (is_over or self._is_whole):
            return None
        headers = ((k.decode("latin-1"), v.decode("latin-1")) for k, v in self._response.headers)
        status, body = self._response.status_code, bytes(self._body)
        return HttpReply(status, tuple(headers), body, self._is_whole)

    def _read(self, *, is_end: bool) -> None:
        while self._response is None:  # interim replies (1xx) can precede the final one
            end = _HEAD_END.search(self._unread)
            if end is None:
                return
            self._connection.receive_data(
                _without_invalid_lines(bytes(self._unread[: end.start()]))
            )
            del self._unread[: end.end()]
            self._process_events()
        for start in range(0, len(self._unread), _PIECE_BYTES):
            self._connection.receive_data(bytes(self._unread[start : start + _PIECE_BYTES]))
            self._process_events()
        self._unread.clear()
        if is_end:
            self._connection.receive_data(b"")
            self._process_events()

    def _process_events(self) -> None:
        while not self._is_whole:
            event = self._connection.next_event()
            if isinstance(event, h11.Response):
                self._response = event
            elif isinstance(event, h11.Data):
                self._body += event.data
            elif isinstance(event, h11.EndOfMessage):
                self._is_whole = True
            elif not isinstance(event, h11.InformationalResponse):
                return


def _without_invalid_lines(head: bytes) -> bytes:
    """Return the head of a reply without the invalid lines that some devices send.

    h11 would refuse the whole reply because of such a line. Consecutive blanks become one, because
    h11's patterns take seconds for 32 KiB of blanks.
    """
    status, *lines = head.replace(b"\0", b" ").splitlines() or [b""]
    pairs = (line.partition(b":")[::2] for line in lines)
    fields = (b"%s: %s" % (name.strip(), b" ".join(value.split())) for name, value in pairs)
    valid_fields = (field for field in fields if _FIELD.match(field))
    return b"\r\n".join((b" ".join(status.split()), *valid_fields, b"", b""))
