"""The service behind a real nginx and a real Caddy, as `packaging/proxy` sets them up, spoken to by
the real agent. `make test-proxy` runs it; both come from Debian's packages."""

import asyncio
import json
import shutil
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agent.wire import routes
from tests.packaging.service.proxies import SHORT_TIMEOUT_S, Proxy, free_port, running_proxy
from tests.paths import ROOT
from tests.scenario.agent_process import running_agent, write_config
from tests.unit.controlplane.test_process import Process, start, stop

LIMIT = 2 * 1024 * 1024
AT_ONCE_S = 1.0
BACK_WITHIN_S = 90
OPERATION = "/api/public/v1/remoteControl/{}"


@dataclass
class Front:
    """A service behind a proxy; ``service`` changes when it is started again."""

    kind: str
    proxy: Proxy
    service: Process
    port: int

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.service.api_key}"}

    def client(self) -> httpx2.AsyncClient:
        context: ssl.SSLContext = self.proxy.context
        return httpx2.AsyncClient(base_url=self.proxy.base_url, verify=context, timeout=30)


@pytest.fixture(params=["nginx", "caddy"])
def front(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Front]:
    port = free_port()
    service = start(str(tmp_path / "service.db"), "--port", str(port))
    try:
        with running_proxy(request.param, tmp_path, port) as proxy:
            found = Front(request.param, proxy, service, port)
            yield found
            service = found.service
    finally:
        stop(service)


async def call(front: Front, http: httpx2.AsyncClient, operation: str, **body: Any) -> Any:
    reply = await http.post(OPERATION.format(operation), json=body, headers=front.headers())
    assert reply.status_code == 200, reply.text
    return reply.json()


async def answered(front: Front, http: httpx2.AsyncClient, instance_id: str) -> float:
    """Ask the agent for a report, wait for it, and return after how long it had the command."""
    asked = await call(front, http, "createRequest", instanceId=instance_id, kind="application")
    async with asyncio.timeout(BACK_WITHIN_S):
        while True:
            detail = await call(front, http, "deviceDetail", instanceId=instance_id)
            row = next(row for row in detail["requests"] if row["id"] == asked["requestId"])
            if row["status"] in {"completed", "partial"}:
                return seconds(row["receivedAt"]) - seconds(row["createdAt"])
            assert row["status"] in {"queued", "received", "running"}, row
            await asyncio.sleep(0.1)


def seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


async def enrolled(front: Front, http: httpx2.AsyncClient) -> str:
    async with asyncio.timeout(30):
        while True:
            devices = (await call(front, http, "listDevices"))["devices"]
            if devices:
                return str(devices[0]["instanceId"])
            await asyncio.sleep(0.1)


async def test_the_agent_works_and_comes_back_after_a_restart(front: Front, tmp_path: Path) -> None:
    home = tmp_path / "agent"
    home.mkdir()
    (home / "api-key").write_text(front.service.api_key + "\n")
    (home / "api-key").chmod(0o600)
    config = write_config(
        home, front.proxy.base_url, service=f'ca_file = "{front.proxy.authority}"'
    )
    async with front.client() as http, running_agent(config):
        instance_id = await enrolled(front, http)
        waits = [await answered(front, http, instance_id) for _ in range(2)]
        assert waits[-1] < AT_ONCE_S, waits
        assert await asyncio.to_thread(stop, front.service) == 0
        down = await http.get("/healthz")
        assert down.status_code in {502, 503}, down.status_code
        front.service = again(front, tmp_path)
        began = time.monotonic()
        back = await answered(front, http, instance_id)
        print(f"{front.kind}: command after {waits} s, after a restart {back:.2f} s,"
              f" answered {time.monotonic() - began:.1f} s after the start")  # fmt: skip


def again(front: Front, folder: Path) -> Process:
    """Start the service again on its port, with the key it knows."""
    started = start(str(folder / "service.db"), "--port", str(front.port))
    return Process(started.popen, started.url, front.service.api_key, started.database)


async def test_a_stream_outlives_the_proxys_timeout_and_is_told_at_once(front: Front) -> None:
    from tests.unit.controlplane.simulated_device import SimulatedDevice

    async with front.client() as http, front.client() as operator:
        device = await SimulatedDevice(http, front.service.api_key).enrolled()
        headers = front.headers() | {"Accept": "text/event-stream"}
        began, comments = time.monotonic(), 0
        async with http.stream("POST", routes.ON_COMMANDS, json={}, headers=headers) as stream:
            assert stream.status_code == 200
            lines = stream.aiter_lines()
            async for line in lines:
                comments += line.startswith(":")
                if time.monotonic() - began > 2 * SHORT_TIMEOUT_S - 5:
                    break
            assert comments >= 1
            asked_s = time.monotonic()
            asked = await call(
                front, operator, "createRequest", instanceId=device.instance_id, kind="network"
            )
            async for line in lines:
                if line.startswith("data: "):
                    break
            told_s = time.monotonic() - asked_s
        assert json.loads(line.removeprefix("data: "))["requestId"] == asked["requestId"]
        assert told_s < AT_ONCE_S
        print(f"{front.kind}: alive after {asked_s - began:.0f} s, told after {told_s:.3f} s")


async def test_bodies_pass_up_to_the_services_own_bound(front: Front) -> None:
    async with front.client() as http:
        headers = front.headers() | {"Content-Type": "application/json"}
        path = OPERATION.format("submitResult")
        fits = await http.post(path, content=b" " * (LIMIT - 2) + b"{}", headers=headers)
        assert (fits.status_code, fits.json()["code"]) == (400, "validation_error")
        too_large = await http.post(path, content=b" " * LIMIT + b"{}", headers=headers)
        assert (too_large.status_code, too_large.json()["code"]) == (413, "body_too_large")


async def test_browsers_get_http_2_and_nobody_the_metrics(front: Front) -> None:
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


async def test_callers_without_a_key_are_limited_and_others_are_not(front: Front) -> None:
    if front.kind == "caddy":
        assert (
            "no limits for callers without a key"
            in (ROOT / "packaging/proxy/Caddyfile").read_text()
        )
        return
    async with front.client() as http:
        replies = await asyncio.gather(*(http.get("/healthz") for _ in range(120)))
        codes = [reply.status_code for reply in replies]
        assert codes.count(429) >= 30, codes
        assert codes.count(200) >= 20, codes
        for _ in range(80):
            await call(front, http, "listDevices")
        rubbish = "x" * 43
        for credential in (
            {"Cookie": f"other=1; __Secure-venue.session_token={rubbish}"},
            {"Authorization": f"Bearer voa_{rubbish}"},
            {"Authorization": f"Bearer eyJ{rubbish}.{rubbish}.{rubbish}"},
        ):
            codes = [
                (await http.get("/healthz", headers=credential)).status_code for _ in range(30)
            ]
            assert codes == [200] * 30, credential


async def test_an_address_that_the_caller_wrote_is_not_passed_on(front: Front) -> None:
    """The service has no use for addresses; who adds one must not be told lies."""
    heard: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.set_result((await reader.readuntil(b"\r\n\r\n")).decode("latin-1"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    assert await asyncio.to_thread(stop, front.service) == 0
    async with await asyncio.start_server(take, "127.0.0.1", front.port), front.client() as http:
        await http.get("/", headers={"X-Forwarded-For": "203.0.113.9"})
    said = [line for line in (await heard).lower().splitlines() if "forwarded-for" in line]
    assert said == ["x-forwarded-for: 127.0.0.1"]
