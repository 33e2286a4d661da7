"""Tests of limits on connections that wait for the client.

A connection waits until its client sends a head, sends a body, or reads a reply.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from controlplane.settings import Settings
from controlplane.web import protocol
from controlplane.web.protocol import PIPELINED_MAX, bounded_protocol
from tests.unit.controlplane.unread_connections import wait_until_closed

TIMEOUT_S = 300
REQUEST = b"GET / HTTP/1.1\r\nHost: service\r\n\r\n"

LARGE = 16 * 1024 * 1024
"""Size of a reply in bytes. No system can buffer so much, so the client must read the reply."""


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Reply to a request. The reply at ``/large`` is large. ``/body`` waits for the whole body."""
    while scope["path"] == "/body":
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        if not message["more_body"]:
            break
    body = b"x" * LARGE if scope["path"] == "/large" else b"ok"
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def serve(limit: int = 10, **settings: Any) -> AsyncIterator[int]:
    """Serve with a limit on connections that wait for the client. Yield the port."""
    config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None)
    config.load()
    protocol_class = bounded_protocol(Settings(awaited_max=limit, **settings))
    factory = partial(protocol_class, config=config, server_state=ServerState(), app_state={})
    server = await asyncio.get_running_loop().create_server(factory, "127.0.0.1", 0)
    async with server, asyncio.timeout(TIMEOUT_S):
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def connect(
    port: int, address: str = "127.0.0.1"
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def test_a_connection_without_a_complete_head_is_closed_with_408(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 0.05)
    async with serve(10) as port, connect(port) as (reader, writer):
        writer.write(REQUEST[:10])
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")


async def test_the_head_of_the_next_request_of_a_connection_has_a_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serve(10) as port, connect(port) as (reader, writer):
        monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 0.05)
        writer.write(REQUEST)
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
        writer.write(REQUEST[:10])
        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")


async def test_the_size_of_a_head_is_limited() -> None:
    async with serve(10) as port, connect(port) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\n" + b"X: " + b"x" * protocol.HEAD_MAX_BYTES)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 431 ")


def unread_body(size: int) -> bytes:
    """Return the head of a request whose body the application does not read."""
    return b"POST / HTTP/1.1\r\nHost: service\r\nContent-Length: %d\r\n\r\n" % size


async def test_the_rest_of_an_unread_body_is_discarded() -> None:
    size = protocol.HEAD_MAX_BYTES * 20
    async with serve(10) as port, connect(port) as (reader, writer):
        writer.write(unread_body(size))
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
        writer.write(b"x" * size + REQUEST)
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")


async def test_the_size_of_the_rest_of_an_unread_body_is_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(protocol, "DISCARDED_MAX_BYTES", protocol.HEAD_MAX_BYTES)
    async with serve(10) as port, connect(port) as (reader, writer):
        writer.write(unread_body(protocol.HEAD_MAX_BYTES * 4))
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
        with suppress(ConnectionError):
            writer.write(b"x" * protocol.HEAD_MAX_BYTES * 3)
            await writer.drain()
            assert (await reader.read()).startswith(b"HTTP/1.1 431 ")


async def test_the_oldest_waiting_connection_is_closed_at_the_limit() -> None:
    async with serve(3) as port, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connect(port)) for _ in range(5)]
        for reader, writer in clients[2:]:
            writer.write(REQUEST)
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
        for reader, _ in clients[:2]:
            with suppress(ConnectionError):
                assert await reader.read() == b""


def post_request(path: str, size: int, *headers: str) -> bytes:
    lines = (f"POST {path} HTTP/1.1", "Host: service", f"Content-Length: {size}", *headers)
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode()


async def assert_closed(reader: asyncio.StreamReader) -> None:
    with suppress(ConnectionError):
        while await reader.read(65_536):
            pass


async def test_the_oldest_connection_with_an_incomplete_body_is_closed_at_the_limit() -> None:
    async with serve(3) as port, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connect(port)) for _ in range(3)]
        for _, writer in clients:
            writer.write(post_request("/body", 2) + b"x")
        new_clients = [await stack.enter_async_context(connect(port)) for _ in range(2)]
        for reader, _ in clients[:2]:
            await assert_closed(reader)
        for reader, writer in (clients[2], *new_clients):
            writer.write(b"x" if writer is clients[2][1] else REQUEST)
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")


async def test_the_limit_of_one_network_leaves_connections_for_other_networks() -> None:
    async with serve(10, network_awaited_max=2) as port, AsyncExitStack() as stack:
        other = await stack.enter_async_context(connect(port, "127.0.0.2"))
        other[1].write(post_request("/body", 2) + b"x")
        same_network = [await stack.enter_async_context(connect(port)) for _ in range(4)]
        for reader, _ in same_network[:2]:
            await assert_closed(reader)
        for reader, writer in same_network[2:]:
            writer.write(REQUEST)
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
        other[1].write(b"x")
        assert (await other[0].readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")


async def test_networks_behind_a_trusted_proxy_are_distinguished() -> None:
    """All addresses of an IPv6 /64 share one limit. At this limit, the oldest of their connections
    is closed.
    """
    proxies = frozenset({"127.0.0.1"})
    addresses = ("192.0.2.1", "2001:db8::1", "2001:db8::2", "2001:db8:0:0:1::3", "2001:db8:0:1::1")
    async with (
        serve(10, network_awaited_max=2, trusted_proxies=proxies) as port,
        AsyncExitStack() as stack,
    ):
        clients = [await stack.enter_async_context(connect(port)) for _ in addresses]
        for (_, writer), address in zip(clients, addresses, strict=True):
            writer.write(post_request("/body", 2, f"X-Forwarded-For: {address}") + b"x")
            await writer.drain()
        await assert_closed(clients[1][0])
        for number in (0, 2, 3, 4):
            reader, writer = clients[number]
            writer.write(b"x")
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")


async def test_the_application_gets_a_request_with_its_whole_short_body() -> None:
    """The application does not read the body.

    If it got the request earlier, its reply would arrive before the end of the body.
    """
    async with serve() as port, connect(port) as (reader, writer), connect(port) as other:
        writer.write(post_request("/", 2) + b"x")
        await writer.drain()
        other[1].write(REQUEST)
        assert (await other[0].readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
        assert not reader._buffer  # type: ignore[attr-defined]
        writer.write(b"x")
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")


async def test_a_request_without_a_body_starts_at_once_even_if_it_requests_an_upgrade(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """curl --http2 sends such requests. The service continues with HTTP/1.1."""
    monkeypatch.setattr(protocol, "BODY_AWAITED_S", 2 * TIMEOUT_S)
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAM\r\n\r\n"
    async with serve() as port, connect(port) as (reader, writer):
        writer.write(REQUEST.removesuffix(b"\r\n") + upgrade)
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "head",
    [
        post_request("/", 2) + b"x",
        post_request("/", 2, "Expect: 100-continue"),
        post_request("/", 1_000_000),
        post_request("/", 2).replace(b"Content-Length: 2", b"Transfer-Encoding: chunked"),
        REQUEST + post_request("/", 2),
    ],
    ids=["slow", "continue", "large", "chunked", "pipelined"],
)
async def test_the_application_gets_a_request_without_its_whole_body(
    head: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "BODY_AWAITED_S", 0.05)
    async with serve() as port, connect(port) as (reader, writer):
        writer.write(head)
        for _ in range(head.count(b" HTTP/1.1")):
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")


async def test_a_client_that_does_not_read_loses_its_connection() -> None:
    async with serve(write_timeout_s=0.05) as port, connect(port) as (_, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(REQUEST.replace(b" / ", b" /large "))
        await asyncio.to_thread(wait_until_closed, [writer.get_extra_info("socket").fileno()], 1)


async def test_connections_whose_clients_do_not_read_are_limited() -> None:
    async with serve(3) as port, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connect(port)) for _ in range(3)]
        for reader, writer in clients:
            writer.write(REQUEST.replace(b" / ", b" /large "))
            await reader.readuntil(b"\r\n\r\n")
        reader, writer = await stack.enter_async_context(connect(port))
        writer.write(REQUEST)
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
        received = [len(await read_large_body(reader)) for reader, _ in clients]
        assert received[0] < LARGE
        assert received[1:] == [LARGE, LARGE]


async def read_large_body(reader: asyncio.StreamReader) -> bytes:
    """Return the body of a large reply, as far as it arrives."""
    received = b""
    with suppress(ConnectionError):
        while len(received) < LARGE and (chunk := await reader.read(LARGE)):
            received += chunk
    return received


@pytest.mark.parametrize("count", [PIPELINED_MAX + 1, 50_000])
async def test_the_number_of_pipelined_requests_of_a_connection_is_limited(count: int) -> None:
    async with serve() as port, connect(port) as (reader, writer):
        writer.write(REQUEST * count)
        for _ in range(PIPELINED_MAX):
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
        last = await reader.readuntil(b"ok")
        assert (b"connection: close" in last) == (count > PIPELINED_MAX + 1)
        if count > PIPELINED_MAX + 1:
            await assert_closed(reader)
