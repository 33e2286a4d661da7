"""The fake server closes all its connections when it stops, even those that have just begun."""

import asyncio
import socket

import pytest

from tests.fakes.http_server import HttpServer, Reply, Request


async def _answer(_: Request) -> Reply:
    return Reply()


@pytest.mark.parametrize("turns", range(6))
async def test_a_server_that_stops_soon_after_a_connection_closes_it(turns: int) -> None:
    """``turns`` is the number of iterations of the event loop before the stop. A connection that
    stays open fails the test (tests/conftest.py).
    """
    server = HttpServer(_answer)
    await server.__aenter__()
    address = ("127.0.0.1", int(server.base_url.rpartition(":")[2]))
    with socket.create_connection(address):
        for _ in range(turns):
            await asyncio.sleep(0)
        await server.__aexit__()
