"""Sends plain HTTP/1.1 over many connections, with as little processor time as possible, because
the service runs on the same machine.
"""

import asyncio
import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from agent.wire import routes
from tests.bench.fleet.fleet import Member

HEAD_END = b"\r\n\r\n"


def call(path: str, member: Member, body: object, accept: str = "application/json") -> bytes:
    """Return the bytes of an HTTP request."""
    content = json.dumps(body).encode()
    return (
        f"POST {path} HTTP/1.1\r\nHost: service\r\nAuthorization: Bearer {member.api_key}\r\n"
        f"Content-Type: application/json\r\nAccept: {accept}\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    ).encode() + content


def heartbeat(member: Member) -> bytes:
    return call(
        routes.HEARTBEAT, member, {"bindingId": str(member.binding_id), "foreground": False}
    )


def list_devices(member: Member) -> bytes:
    return call(routes.LIST_DEVICES, member, {})


def create_request(member: Member) -> bytes:
    body = {"instanceId": str(member.instance_id), "kind": "network"}
    return call(routes.CREATE_REQUEST, member, body)


def submit_report(member: Member, payload: dict[str, Any]) -> bytes:
    """Return the HTTP request that submits a network report with a new report id.

    The report is not the result of a request of the service.
    ``payload`` is the decoded JSON of the report.
    """
    report_id = str(uuid.uuid4())
    body = {
        "bindingId": str(member.binding_id),
        "reportId": report_id,
        "kind": "network",
        "outcome": "completed",
        "report": payload | {"reportId": report_id},
    }
    return call(routes.SUBMIT_RESULT, member, body)


def stream(member: Member) -> bytes:
    return call(routes.ON_COMMANDS, member, {}, "text/event-stream")


class Exchange(asyncio.Protocol):
    """Sends requests one after the other; waits for each reply before it sends the next request."""

    def __init__(self, requests: Iterator[bytes], tally: "Tally") -> None:
        self._requests = requests
        self._tally = tally
        self._buffer = b""
        self._began_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, separator, rest = self._buffer.partition(HEAD_END)
        if not separator:
            return
        lowered = head.lower()
        at = lowered.index(b"content-length:") + len(b"content-length:")
        length = int(lowered[at : at + 12].split(b"\r")[0])
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        self._tally.add(int(head[9:12]), time.perf_counter() - self._began_s)
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        self._tally.end()

    def _next(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            return
        self._began_s = time.perf_counter()
        self._transport.write(request)


@dataclass(slots=True)
class Tally:
    """Counts replies by status. ``connections`` is the number of connections that have not ended;
    ``done`` is set when it is 0.
    """

    connections: int
    statuses: dict[int, int] = field(default_factory=dict)
    latencies_s: list[float] = field(default_factory=list)
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, status: int, latency_s: float) -> None:
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.latencies_s.append(latency_s)

    def end(self) -> None:
        self.connections -= 1
        if self.connections == 0:
            self.done.set()


async def exchange(port: int, requests: list[bytes], connections: int) -> Tally:
    """Send all requests over a number of connections. Each connection waits for the reply to a
    request before it sends the next one.
    """
    tally = Tally(connections)
    remaining = iter(requests)
    loop = asyncio.get_running_loop()
    for _ in range(connections):
        await loop.create_connection(lambda: Exchange(remaining, tally), "127.0.0.1", port)
    await tally.done.wait()
    return tally


async def get(port: int, path: str) -> int:
    """Return the status of the reply to a GET without a credential."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: service\r\n\r\n".encode())
        head = await reader.readuntil(HEAD_END)
    finally:
        writer.close()
        await writer.wait_closed()
    return int(head[9:12])


async def post(port: int, request: bytes) -> bytes:
    """Return the body of the reply. Raises RuntimeError for a status other than 200."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        status, body = await read_reply(reader)
    finally:
        writer.close()
        await writer.wait_closed()
    if status != HTTPStatus.OK:
        raise RuntimeError(f"refused: {body.decode()[:200]}")
    return body


async def read_reply(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Return the status and the body of the next reply. Raises IncompleteReadError if the service
    closes the connection before the end of the reply.
    """
    head = (await reader.readuntil(HEAD_END)).lower()
    length = int(head.partition(b"content-length:")[2].partition(b"\r")[0])
    return int(head[9:12]), await reader.readexactly(length)


class Listener(asyncio.Protocol):
    """An open command stream. It calls ``on_data`` with its number and each chunk of data. The
    result of ``opened`` is the status of the reply.
    """

    def __init__(self, request: bytes, number: int, on_data: Callable[[int, bytes], None]) -> None:
        self._request = request
        self._number = number
        self._on_data = on_data
        self.opened: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.opened.done():
            self.opened.set_result(int(data[9:12]))
        self._on_data(self._number, data)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        if not self.opened.done():
            self.opened.set_exception(ConnectionError("the connection closed before the answer"))


async def open_streams(
    ports: list[int], fleet: list[Member], on_data: Callable[[int, bytes], None], at_once: int = 64
) -> list[Listener]:
    """Open a stream for each device, at most ``at_once`` at a time, spread over the ports."""
    loop = asyncio.get_running_loop()
    turns = asyncio.Semaphore(at_once)

    async def open_one(number: int, member: Member) -> Listener:
        async with turns:
            _, listener = await loop.create_connection(
                lambda: Listener(stream(member), number, on_data),
                "127.0.0.1",
                ports[number % len(ports)],
            )
            status = await listener.opened
            if status != 200:
                raise RuntimeError(f"a stream was refused with {status}")
            return listener

    return await asyncio.gather(*(open_one(number, member) for number, member in enumerate(fleet)))
