"""A small HTTP/1.1 server with every byte of its replies in the test's hand."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
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
    """``stream`` replaces ``body`` by chunks that are written as they come, until it ends."""

    status: int = 200
    body: bytes = b""
    media_type: str | None = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    stream: AsyncIterator[bytes] | None = None
    date: str | None = None


Handler = Callable[[Request], Awaitable[Reply]]


class HttpServer:
    """Serves ``handler`` on a free port of loopback while it is entered."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._connections: set[asyncio.Task[None]] = set()
        self.base_url = ""
        self.connections_made = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections_made += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read(reader)) is not None:
                if not await self._answer(await self._handler(request), writer):
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, reply: Reply, writer: asyncio.StreamWriter) -> bool:
        """Write a reply; return whether the connection may be used again."""
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


async def _read(reader: asyncio.StreamReader) -> Request | None:
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
