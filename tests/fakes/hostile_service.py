"""A service that can answer each operation as a broken service or a hostile network would.

A fault replaces the replies of one operation while it is set; all other calls get correct replies.
Faults write raw bytes, so that no server library repairs them.
"""

import asyncio
import contextlib
import gzip
import json
import socket
import struct
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Self

from tests.fakes.http_server import Connections, Reply, Request, read_request
from tests.fakes.strict_service import PREFIX, Json, StrictService


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its connection.

    ``execute`` executes the request and returns the correct reply, but does not send it.
    """

    request: Request
    writer: asyncio.StreamWriter
    execute: Callable[[], Awaitable[Reply]]
    now: datetime

    async def write(self, content: bytes) -> None:
        self.writer.write(content)
        await self.writer.drain()

    async def reply(
        self, status: int, body: bytes = b"", media_type: str = "application/json", **headers: str
    ) -> None:
        """Send a complete reply and close the connection."""
        lines = {
            "Date": format_datetime(self.now, usegmt=True),
            "Content-Type": media_type,
            "Content-Length": str(len(body)),
            "Connection": "close",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        await self.write(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode("latin-1") + body)

    def reset(self) -> None:
        """Drop the connection with RST (socket(7), SO_LINGER of zero)."""
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.close()


Fault = Callable[[Exchange], Awaitable[None]]
"""Answers an exchange in place of the service. Each function below is a fault, or returns one."""

PORTAL = (
    b"<!doctype html><html><body><form>Welcome to Free WiFi, please log in</form></body></html>"
)
STREAM = "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nConnection: close\r\n\r\n"


def status(
    code: int, body: bytes = b"", media_type: str = "application/json", **headers: str
) -> Fault:
    async def fault(x: Exchange) -> None:
        await x.reply(code, body, media_type, **headers)

    return fault


def document(content: object) -> Fault:
    return status(200, json.dumps(content).encode())


def retry_after_date(code: int, seconds: float) -> Fault:
    async def fault(x: Exchange) -> None:
        timestamp = x.now + timedelta(seconds=seconds)
        await x.reply(code, Retry_After=format_datetime(timestamp, usegmt=True))

    return fault


def raw(content: bytes) -> Fault:
    """Send these bytes and close."""

    async def fault(x: Exchange) -> None:
        await x.write(content)

    return fault


def streamed(media_type: str, chunk: bytes, times: int = 1, pause_s: float = 0.0) -> Fault:
    async def fault(x: Exchange) -> None:
        await x.write(STREAM.format(media_type).encode())
        for _ in range(times):
            await x.write(chunk)
            await asyncio.sleep(pause_s)

    return fault


async def reset(x: Exchange) -> None:
    x.reset()


async def close(x: Exchange) -> None:
    """Close without a reply."""


async def hang(x: Exchange) -> None:
    await asyncio.Event().wait()


async def hang_after_the_head(x: Exchange) -> None:
    await x.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n")
    await asyncio.Event().wait()


async def trickle(x: Exchange) -> None:
    """Send a reply that would take hours: one byte every few seconds."""
    await x.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n"
    )
    while True:
        await x.write(b" ")
        await asyncio.sleep(5)


async def trickle_head(x: Exchange) -> None:
    for byte in b"HTTP/1.1 200 OK\r\nX: " + b"y" * 10_000:
        await x.write(bytes((byte,)))
        await asyncio.sleep(5)


async def continue_for_ever(x: Exchange) -> None:
    while True:
        await x.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await asyncio.sleep(1)


async def large(x: Exchange) -> None:
    await x.reply(200, b'{"a": "' + b"x" * 10_000_000 + b'"}')


async def executed_and_lost(x: Exchange) -> None:
    """Execute the call, but send no reply."""
    await x.execute()
    x.reset()


async def executed_and_truncated(x: Exchange) -> None:
    body = (await x.execute()).body
    await x.reply(200, body[: len(body) // 2], Content_Length=str(len(body)))


async def another_device(x: Exchange) -> None:
    """Send a correct reply, with every id in it replaced."""
    reply = await x.execute()
    try:
        answer = json.loads(reply.body)
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        changed_answer = {
            k: str(uuid.uuid4()) if k.endswith("Id") else v for k, v in answer.items()
        }
        await x.reply(reply.status, json.dumps(changed_answer).encode())
    else:
        await x.reply(reply.status, reply.body)


async def wrong_types(x: Exchange) -> None:
    """Send a correct reply in which each value is replaced by a value of a wrong type."""
    reply = await x.execute()
    try:
        answer = json.loads(reply.body)
    except ValueError:
        answer = None
    changed_answer = {k: [v] for k, v in answer.items()} if isinstance(answer, dict) else 7
    await x.reply(200, json.dumps(changed_answer).encode())


async def compressed(x: Exchange) -> None:
    body = gzip.compress((await x.execute()).body)
    await x.reply(200, body, Content_Encoding="gzip")


async def not_utf8(x: Exchange) -> None:
    await x.reply(200, b'{"nonce": "\xff\xfe", "lastSeenAt": "\xc0\x80"}')


class HostileService(StrictService):
    """``faults`` maps an operation to the fault that replaces its replies.

    ``now`` is the service's clock. ``called_at`` has the time of each call and its operation. These
    times are in seconds on the clock of the event loop.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__()
        self.now = now
        self.faults: dict[str, Fault] = {}
        self.called_at: list[tuple[float, str]] = []
        self._connections = Connections(self._serve)
        self._port = 0

    async def _on_enroll(self, body: Json) -> Reply:
        """Refuse a used challenge. A challenge is valid once, even if the reply was lost."""
        if body.get("challengeId") not in self._challenges:
            return Reply(404)
        return await super()._on_enroll(body)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        await self.come_back()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.go_away()

    async def come_back(self) -> None:
        """Listen on a free port at first, and later on the same port again."""
        self._port = await self._connections.listen(self._port)

    async def go_away(self) -> None:
        """Stop listening and drop every connection: new connections are refused from now on."""
        await self._connections.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await read_request(reader)) is not None:
                operation = request.path.removeprefix(PREFIX)
                self.called_at.append((asyncio.get_running_loop().time(), operation))
                await self._notify()
                if (fault := self.faults.get(operation)) is not None:
                    await fault(
                        Exchange(request, writer, lambda: self._handle(request), self.now())
                    )
                    return
                reply = await self._handle(request)
                reply.date = format_datetime(self.now(), usegmt=True)
                if not await self._server._answer(reply, writer):
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    def most_calls_a_minute(self) -> int:
        """Return the largest number of calls within any 60 seconds."""
        times = [at for at, _ in self.called_at]
        return max((sum(1 for t in times if at <= t < at + 60) for at in times), default=0)
