"""Tests of a service process whose clients read no replies, or send bodies slowly."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack

import httpx2
import psutil
import pytest

from agent.wire import routes
from controlplane.web.accounts.sign_in import SIGN_IN
from tests.packaging.local_service import until
from tests.packaging.service.service_process import ServiceProcess
from tests.unit.controlplane.simulated_device import SimulatedDevice
from tests.unit.controlplane.small_limits import (
    KEEP_ALIVE_S,
    NETWORK_WAITING_CONNECTIONS_MAX,
    WAITING_CONNECTIONS_MAX,
    WRITE_TIMEOUT_S,
)
from tests.unit.controlplane.unread_connections import unread_connections, wait_until_closed

TIMEOUT_S = 300
CONNECTIONS = 300
OTHER_FILES = 30
"""Maximum number of files that the service opens for its database during a test."""
NETWORKS = ("127.0.0.3", "127.0.0.4", "127.0.0.5")
"""Source addresses. The service counts each IPv4 address as a network."""
UNREAD_REQUESTS = b"GET /openapi.json HTTP/1.1\r\nHost: service\r\n\r\n" * 2000
"""Requests whose replies the client does not read."""
UNFINISHED_REQUEST = (
    f"POST {SIGN_IN} HTTP/1.1\r\nHost: service\r\nContent-Type: application/json\r\n"
    "Content-Length: 100\r\n\r\n{"
).encode()
"""A request without the end of its body."""
UNKNOWN_KEY = (
    f"POST {routes.HEARTBEAT} HTTP/1.1\r\nHost: service\r\nContent-Type: application/json\r\n"
    f"Authorization: Bearer vck_{'x' * 43}\r\nContent-Length: 100\r\n\r\n{{"
).encode()
"""A request with an unknown API key, without the end of its body."""
pytestmark = [
    pytest.mark.medium,
    pytest.mark.skipif(
        sys.platform != "linux", reason="the test uses several addresses of loopback"
    ),
]


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    folder = tmp_path_factory.mktemp("process")
    process = ServiceProcess(folder, "tests.unit.controlplane.small_limits")
    yield process
    process.stop()


@pytest.fixture
async def device(process: ServiceProcess) -> AsyncIterator[SimulatedDevice]:
    async with httpx2.AsyncClient(base_url=process.url, timeout=TIMEOUT_S) as http:
        yield await SimulatedDevice(http, process.api_key).enrolled()


async def assert_served(process: ServiceProcess, device: SimulatedDevice) -> None:
    """Send a heartbeat on the open connection of the device, and one on a new connection."""
    open_connection = device.http
    assert (await device.heartbeat()).status_code == 200
    async with httpx2.AsyncClient(base_url=process.url, timeout=TIMEOUT_S) as device.http:
        assert (await device.heartbeat()).status_code == 200
    device.http = open_connection


def open_files(process: ServiceProcess) -> int:
    return psutil.Process(process.pid).num_fds()


async def wait_for_open_files(process: ServiceProcess, count: int) -> None:
    """Wait until the process has at most ``count`` open files."""
    await asyncio.to_thread(until, lambda: open_files(process) <= count, TIMEOUT_S)


@pytest.mark.parametrize(
    "data",
    [UNREAD_REQUESTS, UNFINISHED_REQUEST, UNKNOWN_KEY],
    ids=["unread", "slow", "unknown key"],
)
async def test_waiting_connections_of_one_network_are_closed_while_a_device_is_served(
    process: ServiceProcess, device: SimulatedDevice, data: bytes
) -> None:
    before = open_files(process)
    with unread_connections(process.port, CONNECTIONS, data, NETWORKS[0]):
        await assert_served(process, device)
        await wait_for_open_files(process, before + NETWORK_WAITING_CONNECTIONS_MAX + OTHER_FILES)
        await assert_served(process, device)
        await wait_for_open_files(process, before + OTHER_FILES)


async def test_connections_of_several_networks_have_a_common_limit(
    process: ServiceProcess, device: SimulatedDevice
) -> None:
    connections: list[int] = []
    with ExitStack() as stack:
        for network in NETWORKS:
            opened = unread_connections(
                process.port, NETWORK_WAITING_CONNECTIONS_MAX, UNFINISHED_REQUEST, network
            )
            connections += stack.enter_context(opened)
        async with asyncio.timeout(TIMEOUT_S):
            await asyncio.to_thread(
                wait_until_closed, connections, len(connections) - WAITING_CONNECTIONS_MAX
            )
        await assert_served(process, device)


async def test_the_write_timeout_does_not_end_a_stream_while_its_client_reads(
    process: ServiceProcess, device: SimulatedDevice
) -> None:
    headers = {"Authorization": f"Bearer {process.api_key}", "Accept": "text/event-stream"}
    comments = 0
    async with asyncio.timeout(TIMEOUT_S):
        async with device.http.stream(
            "POST", routes.ON_COMMANDS, json={}, headers=headers
        ) as stream:
            async for line in stream.aiter_lines():
                comments += line.startswith(":")
                if comments * KEEP_ALIVE_S > 4 * WRITE_TIMEOUT_S:
                    return
    raise AssertionError("the service ended the stream")
