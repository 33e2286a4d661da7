"""Tests of `venue-control request` for one device and for many, against a running service."""

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from agent.wire import routes
from controlplane.cli.main import main
from controlplane.cli.screen import confirmation
from controlplane.clock import system_clock
from controlplane.storage.database import Database
from controlplane.storage.tables import Device
from tests.unit.controlplane.cli.running_fleet import (
    TIMEOUT_S,
    ServiceProcess,
    answering,
    enroll,
    run_in_thread,
    service_process,
)
from tests.unit.controlplane.simulated_device import SimulatedDevice

pytestmark = [
    pytest.mark.medium,
    pytest.mark.skipif(
        sys.platform == "win32", reason="the test stops the service with POSIX signals"
    ),
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with service_process(tmp_path_factory.mktemp("service") / "service.db") as process:
        yield process


@pytest.fixture(autouse=True)
def environment(service: ServiceProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in service.as_environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
async def http(service: ServiceProcess) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=service.url, timeout=TIMEOUT_S) as client:
        yield client


async def enroll_devices(
    http: httpx2.AsyncClient, service: ServiceProcess, location: str, count: int
) -> list[SimulatedDevice]:
    return [
        await enroll(http, service.api_key, f"{location}-till-{number}", locationId=location)
        for number in range(1, count + 1)
    ]


async def test_a_request_to_a_venue_prints_the_headlines(
    http: httpx2.AsyncClient,
    service: ServiceProcess,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    devices = await enroll_devices(http, service, "headlines", 3)
    out = str(tmp_path / "reports")
    words = ["request", "--location", "headlines", "network", "--wait", "--out", out]
    async with answering(devices) as answered_ids:
        assert await asyncio.to_thread(main, words) == 0
    assert len(answered_ids) == 3
    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert all(len(line) <= 80 for line in lines), output.out
    assert lines[0].split() == ["device", "location", "outcome", "report"]
    assert lines[1].split()[:3] == ["headlines-till-1", "headlines", "completed"]
    assert lines[2].startswith("  Kitchen printer has moved from 192.168.1.50:9100 to")
    assert lines[-1] == "3 devices: 3 completed"
    assert "3 of 3: " in output.err
    files = sorted(path.name for path in Path(out).iterdir())
    first = f"headlines-till-1-{devices[0].instance_id[:8]}-network"
    assert files[:2] == [f"{first}.html", f"{first}.json"]
    assert len(files) == 6
    record = json.loads((Path(out) / files[1]).read_text("utf-8"))
    assert record["instanceId"] == devices[0].instance_id
    assert str(record["id"])[:8] == lines[1].split()[3]


async def test_the_output_in_a_pipe_has_one_line_per_device(
    http: httpx2.AsyncClient, service: ServiceProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")
    devices = await enroll_devices(http, service, "pipe", 2)
    async with answering(devices, "failed"):
        result = await run_in_thread("request", "--location", "pipe", "application", "--wait")
    assert result.returncode == 1
    headings, *rows = result.stdout.splitlines()
    assert headings.split() == ["device", "location", "outcome", "report", "headline"]
    assert len(rows) == 2
    assert all(row.endswith("No report: collection-failed.") for row in rows)
    assert "\x1b" not in result.stdout + result.stderr


async def test_devices_with_an_open_request_are_skipped(
    http: httpx2.AsyncClient, service: ServiceProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = await enroll_devices(http, service, "twice", 2)
    await first.create_request("network")
    words = ["request", "--location", "twice", "network"]
    assert await asyncio.to_thread(main, words) == 0
    captured = capsys.readouterr()
    assert "left out, has an open request of this kind: 1 (twice-till-1)" in captured.err
    assert "twice-till-2" in captured.out
    assert len((await first.detail())["requests"]) == len((await second.detail())["requests"]) == 1
    assert await asyncio.to_thread(main, words) == 1


async def test_no_more_requests_are_open_than_the_option_at_once_permits(
    http: httpx2.AsyncClient, service: ServiceProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    devices = await enroll_devices(http, service, "few", 3)
    names = [f"few-till-{number}" for number in (1, 2, 3)]
    words = ["request", *names, "network", "--wait", "--at-once", "1"]
    async with answering(devices):
        assert await asyncio.to_thread(main, words) == 0
    spans = []
    for device in devices:
        (request,) = (await device.detail())["requests"]
        spans.append((request["createdAt"], request["finishedAt"]))
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert capsys.readouterr().out.endswith("3 devices: 3 completed\n")


async def test_a_request_to_many_devices_requires_confirmation(
    http: httpx2.AsyncClient,
    service: ServiceProcess,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(confirmation, "CONFIRM_ABOVE", 1)
    devices = await enroll_devices(http, service, "many", 2)
    words = ["request", "--location", "many", "network"]
    assert await asyncio.to_thread(main, words) == 2
    assert "Request network reports from 2 devices?" in capsys.readouterr().err
    assert [(await device.detail())["requests"] for device in devices] == [[], []]
    assert await asyncio.to_thread(main, [*words, "--yes"]) == 0
    assert [len((await device.detail())["requests"]) for device in devices] == [1, 1]


@pytest.mark.parametrize(
    ("words", "code_and_message"),
    [
        ("request network", "2: no device is selected"),
        ("request x --all network", "2: use either names of devices, or --all"),
        ("request --location nowhere network", "1: no devices match the filters"),
        ("request no-such-till y network", "1: no device matches 'no-such-till'"),
    ],
)
async def test_an_invalid_choice_of_devices_is_refused(
    http: httpx2.AsyncClient,
    service: ServiceProcess,
    capsys: pytest.CaptureFixture[str],
    words: str,
    code_and_message: str,
) -> None:
    await enroll_devices(http, service, "some", 1)
    code = await asyncio.to_thread(main, words.split())
    result = capsys.readouterr().err
    code_and_output = f"{code}: {result.removeprefix('venue-control: ')}"
    assert code_and_output.startswith(code_and_message)


async def test_a_device_that_cannot_send_the_requested_kind_is_left_out(
    http: httpx2.AsyncClient, service: ServiceProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    await enroll(
        http, service.api_key, "only-app", locationId="kinds", capabilities=["application"]
    )
    assert await asyncio.to_thread(main, ["request", "--location", "kinds", "network"]) == 1
    assert "left out, makes no reports of this kind: 1 (only-app)" in capsys.readouterr().err


async def test_offline_devices_are_left_out_unless_one_device_is_named(tmp_path: Path) -> None:
    options = ("--request-ttl", "1")
    with service_process(tmp_path / "service.db", *options) as service:
        async with httpx2.AsyncClient(base_url=service.url, timeout=TIMEOUT_S) as http:
            for name in ("gone-till-1", "gone-till-2"):
                await enroll(http, service.api_key, name, locationId="gone")
            with closing(Database(service.database, connections=1)) as database:
                database.write(make_all_offline)
            variables = service.as_environment()
            result_of_all = await run_in_thread(
                "request", "--all", "network", "--wait", **variables
            )
            result_of_one = await run_in_thread(
                "request", "gone-till-1", "network", "--wait", **variables
            )
    assert result_of_all.returncode == 1
    assert "left out, offline: 2 (gone-till-1, gone-till-2)" in result_of_all.stderr
    assert "venue-control: no device is left to request a report from" in result_of_all.stderr
    assert "gone-till-1 is offline, last seen " in result_of_one.stderr
    assert "The request expired before a report arrived." in result_of_one.stderr
    assert result_of_one.stdout.splitlines()[-1].endswith(" expired")
    assert result_of_one.returncode == 1


def make_all_offline(session: Session) -> None:
    session.execute(update(Device).values(last_seen_at=system_clock() - timedelta(hours=1)))


async def test_requests_to_many_devices_wait_for_the_rate_limit(tmp_path: Path) -> None:
    """The rate limit permits a burst of three calls, then one call per second.

    The command makes nine calls.
    """
    database = tmp_path / "service.db"
    with service_process(database) as service:
        async with httpx2.AsyncClient(base_url=service.url, timeout=TIMEOUT_S) as http:
            await enroll_devices(http, service, "slow", 4)
    with service_process(database, "--rate", "1", "--burst", "3") as service:
        words = ("request", "--all", "network", "--yes")
        result = await run_in_thread(*words, **service.as_environment())
    assert result.returncode == 0, result.stderr
    assert re.fullmatch(r"the service limits the rate of calls: waiting [1-9] s\n", result.stderr)
    assert result.stdout.endswith("4 devices: 4 queued\n")


async def test_ctrl_c_stops_waiting_and_lists_the_open_requests(
    http: httpx2.AsyncClient, service: ServiceProcess
) -> None:
    devices = await enroll_devices(http, service, "interrupted", 2)
    words = ["request", "--location", "interrupted", "network", "--wait"]
    process = await asyncio.to_thread(
        lambda: subprocess.Popen(
            [sys.executable, "-m", "controlplane", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await wait_for_both_requests(devices)
        process.send_signal(signal.SIGINT)
        out, error = await asyncio.to_thread(process.communicate, timeout=TIMEOUT_S)
    finally:
        process.kill()
        process.wait(TIMEOUT_S)
    assert process.returncode == 130
    # If the command ends before it receives the reply to its second request, it lists only the
    # first request.
    continues = r"(The request continues|2 requests continue) at the service until \d\d:\d\d"
    assert re.search(continues, error)
    assert "venue-control reports --since 1h" in error
    assert "Traceback" not in error
    assert re.search(r"(1 device: 1|2 devices: 2) queued\n$", out)


async def wait_for_both_requests(devices: list[SimulatedDevice]) -> None:
    missing_bindings = {device.binding_id for device in devices}
    headers = {"Authorization": f"Bearer {devices[0].api_key}", "Accept": "text/event-stream"}
    http = devices[0].http
    async with http.stream("POST", routes.ON_COMMANDS, json={}, headers=headers) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                missing_bindings.discard(json.loads(line.removeprefix("data: "))["bindingId"])
            if not missing_bindings:
                return
