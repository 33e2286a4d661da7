"""An HTTP server on loopback. The test writes every byte of its answers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

AnswerWriter = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A received request. Header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class ScriptedServer:
    """``write_answer`` answers each request. The connection is closed after the answer."""

    write_answer: AnswerWriter | None = None
    requests: list[ReceivedRequest] = field(default_factory=list)
    port: int = 0
    connections: int = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(
        self, body: bytes = b"", status: int = 200, content_type: str = "application/json",
        **headers: str,
    ) -> None:  # fmt: skip
        """Set the answer to all further requests.

        Write header names with underscores instead of hyphens.
        """
        all_headers = {
            "Content-Type": content_type,
            "Content-Length": str(len(body)),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }

        async def write_answer(writer: asyncio.StreamWriter) -> None:
            writer.write(head(status, all_headers) + body)

        self.write_answer = write_answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                self.requests.append(await _read_request(reader))
                assert self.write_answer is not None
                await self.write_answer(writer)
                await writer.drain()
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """Return a status line and headers, with ``Connection: close`` as the first header."""
    reason = HTTPStatus(status).phrase
    lines = [f"HTTP/1.1 {status} {reason}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


@contextlib.asynccontextmanager
async def running_server() -> AsyncIterator[ScriptedServer]:
    server = ScriptedServer()
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(server.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listener = await asyncio.start_server(connected, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await listener.wait_closed()


async def _read_request(reader: asyncio.StreamReader) -> ReceivedRequest:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = lines[0].split(" ")
    headers = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines[1:])
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return ReceivedRequest(method, path, headers, body)
