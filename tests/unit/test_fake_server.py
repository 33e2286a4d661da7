"""The fake server closes all its connections when it stops, even during a call."""

import asyncio
import socket

import pytest

from tests.fakes.http_server import HttpServer, Reply, Request


async def _answer(_: Request) -> Reply:
    return Reply()


@pytest.mark.parametrize("turns", range(6))
async def test_a_server_that_stops_during_a_call_closes_its_connections(turns: int) -> None:
    server = HttpServer(_answer)
    await server.__aenter__()
    address = ("127.0.0.1", int(server.base_url.rpartition(":")[2]))
    with socket.create_connection(address):
        for _ in range(turns):
            await asyncio.sleep(0)
        await server.__aexit__()
