"""Tests of several workers, which are processes that share a socket and a PostgreSQL database."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psutil
import pytest

from agent.wire import routes
from tests.packaging.local_service import until
from tests.postgresql import new_database
from tests.unit.controlplane.simulated_device import SimulatedDevice
from tests.unit.controlplane.test_process import TIMEOUT_S, Process, run, start, stop

pytestmark = [
    pytest.mark.medium,
    pytest.mark.needs("postgresql"),
    pytest.mark.skipif(sys.platform != "linux", reason="the test reads /proc"),
]


FORKED_WORKERS = "tests.unit.controlplane.forked_workers"
"""The module of a service whose workers start sooner than usual, because they are forks."""


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with new_database() as url:
        yield url


async def first_request_of_stream(device: SimulatedDevice, opened: asyncio.Event) -> str:
    """Open a command stream, and then set ``opened``. Return the id of its first request."""
    headers = {"Authorization": f"Bearer {device.api_key}", "Accept": "text/event-stream"}
    async with device.http.stream("POST", routes.ON_COMMANDS, json={}, headers=headers) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("retry:"):
                opened.set()
            if line.startswith("id: "):
                return line.removeprefix("id: ")
    raise AssertionError("the stream has ended")


def workers_of(process: Process) -> list[int]:
    """Return the process ids of the workers, without the resource tracker of multiprocessing."""
    results = []
    for child in psutil.Process(process.fork.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if "resource_tracker" not in " ".join(child.cmdline()):
                results.append(child.pid)
    return results


def is_running(pid: int) -> bool:
    """Return whether a process runs. A zombie process has ended, so the result is False."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_several_workers_need_postgresql(tmp_path: Path) -> None:
    result = run(
        "serve", "--port", "0", "--workers", "2", "--database", str(tmp_path / "service.db")
    )
    assert result.returncode == 2
    assert "several workers require PostgreSQL" in result.stderr
    assert "Traceback" not in result.stderr


async def test_requests_reach_the_streams_of_every_worker(database: str) -> None:
    process = start(database, "--workers", "2", module=FORKED_WORKERS)
    try:
        async with httpx2.AsyncClient(base_url=process.url, timeout=TIMEOUT_S) as http:
            device = await SimulatedDevice(http, process.api_key).enrolled()
            opened = [asyncio.Event() for _ in range(8)]
            async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
                streams = [
                    group.create_task(first_request_of_stream(device, event)) for event in opened
                ]
                for event in opened:
                    await event.wait()
                request = await device.create_request()
            assert {stream.result() for stream in streams} == {request}
    finally:
        assert stop(process) == 0


def test_a_dead_worker_is_replaced_and_workers_end_with_the_main_process(database: str) -> None:
    process = start(database, "--workers", "2")
    try:
        first, second = workers_of(process)
        subprocess.run(("kill", "-9", str(first)), check=True)
        with httpx2.Client(base_url=process.url, timeout=TIMEOUT_S) as http:

            def workers_after_replacement() -> list[int]:
                assert http.get("/healthz").status_code == 200
                workers = workers_of(process)
                return workers if len(workers) == 2 and first not in workers else []

            workers = until(workers_after_replacement, TIMEOUT_S)
            assert second in workers
        process.fork.kill()
        process.fork.join(TIMEOUT_S)
        until(lambda: not any(is_running(pid) for pid in workers), TIMEOUT_S)
    finally:
        stop(process)
