"""A small HTTP/1.1 server. The test sets the status, the headers and the body of each reply."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Self


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Reply:
    """``stream`` yields chunks that follow ``body``. Each is written as soon as it is available.

    ``date`` is the value of the header Date. None means the current time.
    """

    status: int = 200
    body: bytes = b""
    media_type: str | None = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    stream: AsyncIterator[bytes] | None = None
    date: str | None = None


Handler = Callable[[Request], Awaitable[Reply]]
Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter


class Connections:
    """The connections of one fake server. ``close`` closes all of them.

    Each connection has a task, but a task cannot always close its connection: a task that is
    cancelled before its first step never reaches its own ``finally``. Therefore ``close`` also
    closes the connections of the cancelled tasks. A connection can still be accepted while the
    listener is closing. It is closed at once. ``made`` is the number of accepted connections.
    """

    def __init__(self, serve: Callable[[Reader, Writer], Coroutine[None, None, None]]) -> None:
        self._serve = serve
        self._tasks: dict[asyncio.Task[None], Writer] = {}
        self._closing = True
        self.made = 0

    async def listen(
        self, port: int = 0, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
    ) -> int:
        """Listen on loopback or another address, and return the port."""
        self._closing = False
        self._server = await asyncio.start_server(self._connected, host, port, ssl=tls)
        port_number: int = self._server.sockets[0].getsockname()[1]
        return port_number

    def _connected(self, reader: Reader, writer: Writer) -> None:
        if self._closing:
            writer.transport.abort()
            return
        # With TCP_NODELAY, a small reply does not wait for the ACK of the previous reply.
        peer: socket.socket = writer.get_extra_info("socket")
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.made += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks[task] = writer
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task).close()

    async def close(self) -> None:
        """Stop listening and drop every connection."""
        if self._closing:
            return
        self._closing = True
        # asyncio needs two iterations of the event loop to set up an accepted connection. If the
        # server is closed during this time, Python before 3.12 never closes this connection.
        for listener_socket in self._server.sockets:
            asyncio.get_running_loop().remove_reader(listener_socket.fileno())
        for _ in range(3):
            await asyncio.sleep(0)
        self._server.close()
        open_tasks = dict(self._tasks)
        for task in open_tasks:
            task.cancel()
        await asyncio.gather(*open_tasks, return_exceptions=True)
        for writer in open_tasks.values():
            writer.transport.abort()
        # If a cancelled task was waiting for its connection to close, its wait was cancelled too.
        await asyncio.gather(
            *(w.wait_closed() for w in open_tasks.values()), return_exceptions=True
        )
        await self._server.wait_closed()


class HttpServer:
    """A context manager that serves ``handler`` on a free port of loopback."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._connections = Connections(self._serve)
        self.base_url = ""

    @property
    def connections_made(self) -> int:
        return self._connections.made

    async def __aenter__(self) -> Self:
        self.base_url = f"http://127.0.0.1:{await self._connections.listen()}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connections.close()

    async def listen(self, host: str, port: int, tls: ssl.SSLContext) -> None:
        """Serve at ``host`` and ``port`` with TLS, until this process ends."""
        await self._connections.listen(port, host=host, tls=tls)

    async def _serve(self, reader: Reader, writer: Writer) -> None:
        try:
            while (request := await read_request(reader)) is not None:
                if not await self._answer(await self._handler(request), writer):
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, reply: Reply, writer: Writer) -> bool:
        """Write a reply, and return whether the connection can be used again."""
        headers = {"Date": reply.date or formatdate(usegmt=True), **reply.headers}
        if reply.media_type is not None:
            headers["Content-Type"] = reply.media_type
        if reply.stream is None:
            headers["Content-Length"] = str(len(reply.body))
        else:
            headers["Connection"] = "close"
        head = f"HTTP/1.1 {reply.status} X\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(head.encode() + b"\r\n" + reply.body)
        await writer.drain()
        if reply.stream is None:
            return True
        async for chunk in reply.stream:
            writer.write(chunk)
            await writer.drain()
        return False


async def read_request(reader: Reader) -> Request | None:
    """Return the next request, or None if the client has closed the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, body)
