"""Tests the service behind a real nginx and a real Caddy, with the configuration of
`packaging/proxy`.

Needs Debian's packages nginx, caddy and curl. Runs in a separate network namespace.

Usage: python -m tests.packaging.service.verify_proxy [ARGUMENT OF PYTEST...]
"""

import asyncio
import json
import os
import shutil
import socket
import ssl
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from agent.wire import routes
from tests.lab.namespaces import entering
from tests.packaging.local_service import until
from tests.packaging.service.frequent_comments import COMMENT_EVERY_S
from tests.packaging.service.proxies import SHORT_TIMEOUT_S, Proxy, running_proxy
from tests.packaging.service.service_process import ServiceProcess, free_port
from tests.paths import ROOT
from tests.scenario.agent_process import running_agent, write_config
from tests.unit.controlplane.simulated_device import SimulatedDevice
from tests.unit.controlplane.small_limits import NETWORK_WAITING_CONNECTIONS_MAX

KINDS = ("nginx", "caddy")
BODY_LIMIT = 2 * 1024 * 1024
"""Maximum size of a body in bytes: the default of the service."""
WITHIN_S = 600
SLOW_BODIES = 100
DATABASE_FILES_MAX = 30
"""Maximum number of files that the service opens for its database during a test."""
COMMENTS_IN_TWO_TIMEOUTS = round(2 * SHORT_TIMEOUT_S / COMMENT_EVERY_S)
"""Number of comments that a stream carries in twice the proxy's time-out."""
OPERATION = "/api/public/v1/remoteControl/{}"


@dataclass(frozen=True)
class Front:
    """A service behind a proxy."""

    kind: str
    proxy: Proxy
    service: ServiceProcess

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.service.api_key}"}

    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            base_url=self.proxy.base_url, verify=self.proxy.context, timeout=WITHIN_S
        )


@contextmanager
def running_front(
    kind: str, folder: Path, module: str = "controlplane", *options: str
) -> Iterator[Front]:
    service = ServiceProcess(folder, module, *options)
    try:
        with running_proxy(kind, folder, service.port) as proxy:
            yield Front(kind, proxy, service)
    finally:
        service.stop()


@pytest.fixture(scope="module", params=KINDS)
def front(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    with running_front(request.param, tmp_path_factory.mktemp("front")) as result:
        yield result


@pytest.fixture(scope="module", params=KINDS)
def limited_front(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    """A service with small limits for connections. It accepts the addresses of callers
    from its proxy.
    """
    options = ("tests.unit.controlplane.small_limits", "--trusted-proxy", "127.0.0.1")
    with running_front(request.param, tmp_path_factory.mktemp("limited"), *options) as result:
        yield result


@asynccontextmanager
async def stream_of_commands(
    front: Front, http: httpx2.AsyncClient
) -> AsyncIterator[AsyncIterator[str]]:
    """Yield the lines of a command stream."""
    headers = front.headers() | {"Accept": "text/event-stream"}
    async with http.stream("POST", routes.ON_COMMANDS, json={}, headers=headers) as stream:
        assert stream.status_code == 200
        yield stream.aiter_lines()


async def call(front: Front, http: httpx2.AsyncClient, operation: str, **body: Any) -> Any:
    reply = await http.post(OPERATION.format(operation), json=body, headers=front.headers())
    assert reply.status_code == 200, reply.text
    return reply.json()


async def request_and_wait(front: Front, http: httpx2.AsyncClient, instance_id: str) -> None:
    """Request a report of the agent and wait for it."""
    request = await call(front, http, "createRequest", instanceId=instance_id, kind="application")
    async with asyncio.timeout(WITHIN_S):
        while True:
            detail = await call(front, http, "deviceDetail", instanceId=instance_id)
            row = next(row for row in detail["requests"] if row["id"] == request["requestId"])
            if row["status"] in {"completed", "partial"}:
                return
            assert row["status"] in {"queued", "received", "running"}, row
            await asyncio.sleep(0.1)


async def wait_for_device(front: Front, http: httpx2.AsyncClient) -> str:
    async with asyncio.timeout(WITHIN_S):
        while True:
            devices = (await call(front, http, "listDevices"))["devices"]
            if devices:
                return str(devices[0]["instanceId"])
            await asyncio.sleep(0.1)


async def test_agent_receives_commands_by_its_stream_after_a_restart(
    front: Front, tmp_path: Path
) -> None:
    (tmp_path / "api-key").write_text(front.service.api_key + "\n")
    (tmp_path / "api-key").chmod(0o600)
    config = write_config(
        tmp_path,
        front.proxy.base_url,
        service=f'ca_file = "{front.proxy.authority}"',
        commands='delivery = "stream"',
    )
    async with front.client() as http, running_agent(config):
        instance_id = await wait_for_device(front, http)
        await request_and_wait(front, http, instance_id)
        assert await asyncio.to_thread(front.service.stop) == 0
        down = await http.get("/healthz")
        assert down.status_code in {502, 503}, down.status_code
        await asyncio.to_thread(front.service.start)
        await request_and_wait(front, http, instance_id)


@pytest.mark.parametrize("kind", KINDS)
async def test_command_is_not_buffered(kind: str, tmp_path: Path) -> None:
    with running_front(kind, tmp_path, "tests.packaging.service.rare_comments") as front:
        async with front.client() as http, front.client() as operator:
            device = await SimulatedDevice(http, front.service.api_key).enrolled()
            async with stream_of_commands(front, http) as lines:
                assert (await anext(lines)).startswith("retry:")
                request = await call(
                    front, operator, "createRequest", instanceId=device.instance_id, kind="network"
                )
                async for line in lines:
                    if line.startswith("data: "):
                        break
            assert json.loads(line.removeprefix("data: "))["requestId"] == request["requestId"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_stream_outlives_the_proxys_timeout(kind: str, tmp_path: Path) -> None:
    comments = 0
    with running_front(kind, tmp_path, "tests.packaging.service.frequent_comments") as front:
        async with front.client() as http, stream_of_commands(front, http) as lines:
            async for line in lines:
                comments += line.startswith(":")
                if comments > COMMENTS_IN_TWO_TIMEOUTS:
                    break
    assert comments > COMMENTS_IN_TWO_TIMEOUTS, "the proxy has ended the stream"


async def test_the_proxy_passes_bodies_up_to_the_limit_of_the_service(front: Front) -> None:
    async with front.client() as http:
        headers = front.headers() | {"Content-Type": "application/json"}
        path = OPERATION.format("submitResult")
        fits = await http.post(path, content=b" " * (BODY_LIMIT - 2) + b"{}", headers=headers)
        assert (fits.status_code, fits.json()["code"]) == (400, "validation_error")
        too_large = await http.post(path, content=b" " * BODY_LIMIT + b"{}", headers=headers)
        assert (too_large.status_code, too_large.json()["code"]) == (413, "body_too_large")


async def test_browsers_get_http_2_and_the_metrics_are_not_public(front: Front) -> None:
    curl = shutil.which("curl")
    assert curl is not None, "install curl"
    words = (
        curl, "--silent", "--cacert", str(front.proxy.authority), "--http2",
        "--output", "/dev/null",
        "--write-out", "%{http_version} %{response_code}",
    )  # fmt: skip
    for path, expected in (("/", "2 200"), ("/healthz", "2 200"), ("/metrics", "2 404")):
        process = await asyncio.create_subprocess_exec(
            *words, front.proxy.base_url + path, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
        assert output.decode() == expected, path


async def test_only_callers_without_credentials_are_rate_limited(front: Front) -> None:
    if front.kind == "caddy":  # it has no rate limit, and its example states that
        example = (ROOT / "packaging/proxy/Caddyfile").read_text()
        assert "cannot limit the rate of callers without a key" in example
        return
    async with front.client() as http:
        codes: Counter[int] = Counter()
        # nginx refuses calls above 5 a second. A slow machine may send a round more slowly than
        # that, so try several rounds.
        for _ in range(10):
            replies = await asyncio.gather(*(http.get("/healthz") for _ in range(120)))
            codes.update(reply.status_code for reply in replies)
            if codes[429] >= 30:
                break
        assert codes[429] >= 30, codes
        assert codes[200] >= 20, codes
        for _ in range(80):
            await call(front, http, "listDevices")
        rubbish = "x" * 43
        for credential in (
            {"Cookie": f"other=1; __Secure-venue.session_token={rubbish}"},
            {"Authorization": f"Bearer voa_{rubbish}"},
            {"Authorization": f"Bearer eyJ{rubbish}.{rubbish}.{rubbish}"},
        ):
            for _ in range(30):
                assert (await http.get("/healthz", headers=credential)).status_code == 200


@contextmanager
def slow_bodies(front: Front, operation: str, address: str) -> Iterator[list[ssl.SSLSocket]]:
    """From ``address``, begin calls with a made-up key, and never send the end of their bodies."""
    port = int(front.proxy.base_url.rpartition(":")[2])
    lines = (
        f"POST {OPERATION.format(operation)} HTTP/1.1", "Host: 127.0.0.1",
        f"Authorization: Bearer vck_{'x' * 43}", "Content-Type: application/json",
        "Content-Length: 100000", "", "{",
    )  # fmt: skip
    with ExitStack() as stack:
        connections = []
        for _ in range(SLOW_BODIES):
            plain = socket.create_connection(("127.0.0.1", port), source_address=(address, 0))
            connection = front.proxy.context.wrap_socket(plain, server_hostname="127.0.0.1")
            connections.append(stack.enter_context(connection))
            connection.sendall("\r\n".join(lines).encode())
        yield connections


async def test_slow_bodies_with_made_up_keys_are_limited_for_each_network(
    limited_front: Front,
) -> None:
    front = limited_front
    async with front.client() as http:
        await call(front, http, "listDevices")
        files_max = open_files(front) + NETWORK_WAITING_CONNECTIONS_MAX + DATABASE_FILES_MAX
        for operation in ("heartbeat", "onCommands"):
            with slow_bodies(front, operation, "127.0.0.2") as connections:
                for _ in range(20):
                    await call(front, http, "listDevices")
                until(lambda: open_files(front) <= files_max, WITHIN_S)
                if (front.kind, operation) == ("nginx", "heartbeat"):
                    # nginx forwards a heartbeat only when its body is complete. Therefore the
                    # unfinished calls fill the limit of nginx, which refuses further calls.
                    assert connections[-1].recv(12) == b"HTTP/1.1 429"


def open_files(front: Front) -> int:
    return psutil.Process(front.service.pid).num_fds()


@pytest.mark.parametrize("kind", KINDS)
async def test_forwarded_address_of_the_caller_is_replaced(kind: str, tmp_path: Path) -> None:
    """The service trusts the X-Forwarded-For header of a proxy. Therefore the proxy must replace
    the header that the caller sends.
    """
    received: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.set_result((await reader.readuntil(b"\r\n\r\n")).decode("latin-1"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    port = free_port()
    async with await asyncio.start_server(receive, "127.0.0.1", port):
        with running_proxy(kind, tmp_path, port) as proxy:
            async with httpx2.AsyncClient(verify=proxy.context, timeout=WITHIN_S) as http:
                await http.get(proxy.base_url, headers={"X-Forwarded-For": "203.0.113.9"})
    headers = [line for line in (await received).lower().splitlines() if "forwarded-for" in line]
    assert headers == ["x-forwarded-for: 127.0.0.1"]


if __name__ == "__main__":
    words = (*entering(), sys.executable, "-m", "pytest", "-n0", __file__, *sys.argv[1:])
    os.execvp(words[0], words)
