"""Tests of a service process, which a simulated device and `venue-control` call over loopback."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import httpx2
import pytest

from agent.wire import routes
from agent.wire.codec import encode
from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION, create_key
from controlplane.cli.main import main
from controlplane.clock import system_clock
from controlplane.server import bind
from controlplane.storage.database import Database
from tests.fixtures.payloads import application_snapshot, small_venue
from tests.packaging.local_service import until
from tests.scenario.forked_process import ForkedProcess, start_forked
from tests.unit.controlplane.simulated_device import SimulatedDevice

TIMEOUT_S = 300
REPORT = json.loads(encode(small_venue()))
SNAPSHOT = json.loads(encode(application_snapshot()))
pytestmark = [
    pytest.mark.medium,
    pytest.mark.skipif(
        sys.platform == "win32", reason="the test stops the service with POSIX signals"
    ),
]


@dataclass(frozen=True)
class Process:
    """A running service. ``output`` is its standard output, and ``api_key`` has the write grant."""

    fork: ForkedProcess
    output: TextIO
    url: str
    api_key: str
    database: str


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    database = str(tmp_path_factory.mktemp("process") / "service.db")
    started = start(database)
    yield started
    stop(started)


@pytest.fixture
async def device(process: Process) -> AsyncIterator[SimulatedDevice]:
    async with httpx2.AsyncClient(base_url=process.url, timeout=TIMEOUT_S) as http:
        yield await SimulatedDevice(http, process.api_key).enrolled()


@pytest.fixture(autouse=True)
def environment(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VENUE_CONTROL_URL", process.url)
    monkeypatch.setenv("VENUE_CONTROL_API_KEY", process.api_key)
    monkeypatch.setenv("VENUE_CONTROL_DATABASE", process.database)
    monkeypatch.setenv("COLUMNS", "80")


def start(database: str, *options: str, module: str = "controlplane") -> Process:
    """Start the service as a fork of a running process. Return when it accepts connections."""
    api_key = write_key(database)
    words = ("serve", "--port", "0", "--database", database, *options)
    with tempfile.TemporaryDirectory() as directory:
        pipe = Path(directory, "output")
        os.mkfifo(pipe)
        fork = start_forked(
            module, *words,
            environment=dict(os.environ), output=pipe, errors=Path(os.devnull),
        )  # fmt: skip
        output = pipe.open()
    line = output.readline()
    process = Process(fork, output, line.split()[-1] if line else "", api_key, database)
    if not line.startswith("listening on http://127.0.0.1:"):
        stop(process)
        raise AssertionError(f"the service printed {line!r}")
    return process


def write_key(database: str) -> str:
    """Create an API key with the write grant in the database, without a `venue-control` process."""
    with closing(Database(database, connections=1)) as opened:
        return opened.write(
            lambda session: create_key(
                session,
                name="test",
                can_write=True,
                locations=(),
                organization_id=DEFAULT_ORGANIZATION,
                now=system_clock(),
            )
        )[1]


def stop(process: Process) -> int:
    """Stop the service. Return its exit code."""
    process.fork.terminate()
    try:
        return process.fork.join(TIMEOUT_S)
    finally:
        process.fork.kill()
        process.output.close()


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run `venue-control` until it ends."""
    return subprocess.run(
        [sys.executable, "-m", "controlplane", *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


async def serve_one_command(device: SimulatedDevice, outcome: str) -> None:
    """Act like an agent: wait for a command on the stream, acknowledge it, submit a report."""
    headers = {"Authorization": f"Bearer {device.api_key}", "Accept": "text/event-stream"}
    async with device.http.stream("POST", routes.ON_COMMANDS, json={}, headers=headers) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                command = json.loads(line.removeprefix("data: "))
                break
    for status in ("received", "running"):
        await device.acknowledge(command["requestId"], status)
    report = None if outcome == "failed" else REPORT
    reply = await device.submit(report, requestId=command["requestId"], outcome=outcome)
    assert reply.status_code == 200, reply.text


def test_requests_to_a_local_service_bypass_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy could read the API key, because calls to a local service are not encrypted."""
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        result = run("devices")
        assert result.returncode == 0, result.stderr
        proxy.setblocking(False)
        with pytest.raises(BlockingIOError):
            proxy.accept()


@pytest.mark.parametrize(("outcome", "code"), [("completed", 0), ("failed", 1)])
async def test_request_with_wait_ends_when_the_report_arrives(
    device: SimulatedDevice, capsys: pytest.CaptureFixture[str], outcome: str, code: int
) -> None:
    arguments = ["request", device.instance_id, "network", "--wait"]
    async with asyncio.timeout(TIMEOUT_S):
        exit_code, _ = await asyncio.gather(
            asyncio.to_thread(main, arguments), serve_one_command(device, outcome)
        )
    lines = capsys.readouterr().out.splitlines()
    assert exit_code == code
    assert lines[0].endswith(" queued")
    assert lines[-2].endswith(f" {outcome}")
    assert lines[-1].startswith("report ")


async def test_devices_and_reports_fit_80_columns(
    device: SimulatedDevice, capsys: pytest.CaptureFixture[str]
) -> None:
    await device.create_request("application")
    report_id = (await device.submit(SNAPSHOT, kind="application")).json()["reportId"]
    for arguments in (
        ["devices"],
        ["device", device.instance_id],
        ["report", report_id],
        ["keys", "list"],
    ):
        assert await asyncio.to_thread(main, arguments) == 0
        output = capsys.readouterr().out
        assert all(len(line) <= 80 for line in output.splitlines()), output
        if arguments[0] in {"devices", "device"}:
            assert device.instance_id[:8] in output
        if arguments[0] == "device":
            assert f"{report_id[:8]}  application  completed  disabled" in output


async def test_a_report_is_printed_as_json_and_written_as_a_page(
    device: SimulatedDevice, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    report_id = (await device.submit(REPORT)).json()["reportId"]
    assert await asyncio.to_thread(main, ["report", report_id, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["payload"] == REPORT
    page = tmp_path / "report.html"
    assert await asyncio.to_thread(main, ["report", report_id, "--html", str(page)]) == 0
    assert page.read_text("utf-8").startswith("<!doctype html>")


async def test_requests_for_a_revoked_device_and_its_heartbeats_are_refused(
    device: SimulatedDevice, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await asyncio.to_thread(main, ["revoke", device.instance_id, "--yes"]) == 0
    assert await asyncio.to_thread(main, ["request", device.instance_id, "network"]) == 1
    assert "device_revoked" in capsys.readouterr().err
    assert (await device.heartbeat()).status_code == 409


def test_a_refusal_of_the_service_is_printed_in_two_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VENUE_CONTROL_API_KEY", "vck_wrong")
    assert main(["devices"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("venue-control: the service answered 401 unauthenticated")
    assert len(lines) == 2


def test_a_key_is_revoked_by_its_id(
    process: Process, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["keys", "create", "--name", "short-lived", "--location", "loc-0001"]
    assert main([*words, "--new-locations"]) == 0
    key = capsys.readouterr().out.strip()
    monkeypatch.setenv("VENUE_CONTROL_API_KEY", key)
    assert main(["devices"]) == 0
    capsys.readouterr()
    assert main(["keys", "list"]) == 0
    rows = capsys.readouterr().out.splitlines()
    (row,) = [row for row in rows if f"…{key[-4:]}" in row]
    assert main(["keys", "revoke", row.split()[0]]) == 0
    # The service polls for revoked keys every few seconds.
    until(lambda: main(["devices"]) != 0, TIMEOUT_S)


def test_enrolled_devices_survive_a_restart_of_the_service(tmp_path: Path) -> None:
    """SIGTERM stops the service with exit code 0, even while a command stream is open.

    After the next start, the device is still enrolled.
    """
    process = start(str(tmp_path / "service.db"))

    async def enroll_and_stop_service() -> tuple[SimulatedDevice, int]:
        async with httpx2.AsyncClient(base_url=process.url, timeout=TIMEOUT_S) as http:
            device = await SimulatedDevice(http, process.api_key).enrolled()
            headers = {"Authorization": f"Bearer {process.api_key}", "Accept": "text/event-stream"}
            async with http.stream("POST", routes.ON_COMMANDS, json={}, headers=headers) as stream:
                lines = stream.aiter_lines()
                assert (await anext(lines)).startswith("retry: ")
                code = await asyncio.to_thread(stop, process)
                async for _ in lines:
                    pass
            return device, code

    device, code = asyncio.run(enroll_and_stop_service())
    assert code == 0
    restarted = start(str(tmp_path / "service.db"))

    async def call_current() -> httpx2.Response:
        async with httpx2.AsyncClient(base_url=restarted.url, timeout=TIMEOUT_S) as http:
            device.http = http
            return await device.call(routes.CURRENT)

    try:
        assert asyncio.run(call_current()).json()["bindingId"] == device.binding_id
    finally:
        assert stop(restarted) == 0


async def test_accepted_connections_have_tcp_nodelay() -> None:
    """asyncio sets TCP_NODELAY only if the listening socket was created with IPPROTO_TCP."""
    option: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_socket = writer.get_extra_info("socket")
        option.set_result(server_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    listener = bind("127.0.0.1", 0)
    async with await asyncio.start_server(answer, sock=listener):
        _, writer = await asyncio.open_connection(*listener.getsockname())
        assert await option
        writer.close()
        await writer.wait_closed()


def test_an_address_in_use_is_reported_in_one_line(process: Process) -> None:
    port = process.url.rpartition(":")[2]
    failed = run("serve", "--port", port, "--database", process.database)
    assert failed.returncode == 2
    assert failed.stderr.startswith("venue-control: cannot listen on 127.0.0.1")
    assert len(failed.stderr.splitlines()) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the test requires POSIX")
def test_help_imports_none_of_the_large_libraries() -> None:
    code = (
        "import sys\n"
        "from controlplane.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([n for n in ('sqlalchemy','starlette','uvicorn','httpx2','rich','pydantic') "
        "if n in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    assert result.stdout.splitlines()[-1] == "[]"
