"""Tests connecting to a device for a query. If the first socket gets no answer soon, a second
socket is tried as well, because the SYN may be lost. A print port is tried by only one socket.
"""

import asyncio
import socket

import pytest

from collectors.network.questions import connection
from collectors.network.questions.connection import connect


class LossyNetwork:
    """A network that loses the SYN of the first attempt. Later attempts reach ``real_port``."""

    def __init__(self) -> None:
        self.real_port = 0
        self.attempt_count = 0
        self.most_at_once = 0
        self._at_once = 0
        self._attempt = connection._attempt

    async def attempt(self, address: str, _port: int) -> socket.socket:
        self.attempt_count += 1
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            if self.attempt_count == 1:
                await asyncio.Event().wait()
            return await self._attempt(address, self.real_port)
        finally:
            self._at_once -= 1


async def test_a_lost_syn_is_repeated_without_a_long_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    network = LossyNetwork()
    monkeypatch.setattr(connection, "SECOND_SOCKET_AFTER_S", 0.02)
    monkeypatch.setattr(connection, "_attempt", network.attempt)
    accepted = asyncio.Semaphore(0)

    def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.release()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        network.real_port = server.sockets[0].getsockname()[1]
        async with connect("127.0.0.1", 80, is_tls=False) as (_reader, writer):
            socket_ = writer.get_extra_info("socket")
            assert socket_.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            await accepted.acquire()
    assert (network.attempt_count, network.most_at_once) == (2, 2)


async def test_a_print_port_is_tried_by_one_socket_only(monkeypatch: pytest.MonkeyPatch) -> None:
    network = LossyNetwork()
    monkeypatch.setattr(connection, "SECOND_SOCKET_AFTER_S", 0.0)
    monkeypatch.setattr(connection, "_attempt", network.attempt)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05), connect("127.0.0.1", 631, is_tls=False):
            pass
    assert (network.attempt_count, network.most_at_once) == (1, 1)


async def test_a_refused_connection_is_not_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    attempted_ports: list[int] = []
    attempt = connection._attempt

    async def counted_attempt(address: str, port: int) -> socket.socket:
        attempted_ports.append(port)
        return await attempt(address, port)

    monkeypatch.setattr(connection, "_attempt", counted_attempt)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(ConnectionRefusedError):
            async with connect("127.0.0.1", port, is_tls=False):
                pass
    assert attempted_ports == [port]


async def test_a_cancelled_query_closes_its_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    begun_ports: list[int] = []
    ended_ports: list[int] = []

    both_have_begun = asyncio.Event()

    async def attempt(_address: str, port: int) -> socket.socket:
        begun_ports.append(port)
        if len(begun_ports) == 2:
            both_have_begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended_ports.append(port)
        raise AssertionError

    async def query() -> None:
        async with connect("127.0.0.1", 80, is_tls=False):
            pass

    monkeypatch.setattr(connection, "SECOND_SOCKET_AFTER_S", 0.01)
    monkeypatch.setattr(connection, "_attempt", attempt)
    task = asyncio.create_task(query())
    await both_have_begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert begun_ports == ended_ports == [80, 80]
