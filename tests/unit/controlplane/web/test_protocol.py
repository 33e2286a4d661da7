"""Tests of limits on incomplete request heads: time, size and number of connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial

import pytest
import uvicorn
from uvicorn.server import ServerState

from controlplane.web import protocol
from controlplane.web.protocol import bounded_protocol

TIMEOUT_S = 300
REQUEST = b"GET / HTTP/1.1\r\nHost: service\r\n\r\n"


async def app(scope: dict[str, object], receive: object, send: object) -> None:
    assert callable(send)
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def served(limit: int) -> AsyncIterator[int]:
    """Serve with a limit on connections without a complete request head. Yield the port."""
    config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None)
    config.load()
    make = partial(bounded_protocol(limit), config=config, server_state=ServerState(), app_state={})
    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    async with server, asyncio.timeout(TIMEOUT_S):
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def test_a_head_that_does_not_come_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 0.05)
    async with served(10) as port, connected(port) as (reader, writer):
        writer.write(REQUEST[:10])
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")


async def test_the_next_request_of_a_connection_has_the_same_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with served(10) as port, connected(port) as (reader, writer):
        monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 0.05)
        writer.write(REQUEST)
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
        writer.write(REQUEST[:10])
        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")


async def test_a_head_is_bounded() -> None:
    async with served(10) as port, connected(port) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\n" + b"X: " + b"x" * protocol.HEAD_MAX_BYTES)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 431 ")


def unread_body(size: int) -> bytes:
    """Return the head of a request whose body the application does not read."""
    return b"POST / HTTP/1.1\r\nHost: service\r\nContent-Length: %d\r\n\r\n" % size


async def test_the_rest_of_an_unread_body_is_discarded() -> None:
    size = protocol.HEAD_MAX_BYTES * 20
    async with served(10) as port, connected(port) as (reader, writer):
        writer.write(unread_body(size))
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
        writer.write(b"x" * size + REQUEST)
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")


async def test_the_rest_of_an_unread_body_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "DISCARDED_MAX_BYTES", protocol.HEAD_MAX_BYTES)
    async with served(10) as port, connected(port) as (reader, writer):
        writer.write(unread_body(protocol.HEAD_MAX_BYTES * 4))
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
        with suppress(ConnectionError):
            writer.write(b"x" * protocol.HEAD_MAX_BYTES * 3)
            await writer.drain()
            assert (await reader.read()).startswith(b"HTTP/1.1 431 ")


async def test_the_oldest_waiting_connection_is_closed_at_the_limit() -> None:
    async with served(3) as port, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(port)) for _ in range(5)]
        for reader, writer in clients[2:]:
            writer.write(REQUEST)
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
        for reader, _ in clients[:2]:
            with suppress(ConnectionError):
                assert await reader.read() == b""
