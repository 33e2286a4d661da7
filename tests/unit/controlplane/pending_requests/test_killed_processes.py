"""Tests that a pending request leads to one report, even if the service is killed repeatedly."""

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import select

from controlplane.storage.database import Database
from controlplane.storage.monitoring_tables import PendingRequest
from tests.sizes import amount
from tests.unit.controlplane.simulated_device import SimulatedDevice
from tests.unit.controlplane.test_process import Process, start, stop, write_key

pytestmark = [
    pytest.mark.medium,
    pytest.mark.skipif(sys.platform == "win32", reason="the test sends SIGKILL"),
]
TIMEOUT_S = 300
KILLS = amount(medium=1, large=6)


def start_service(database: str) -> Process:
    return start(database, "--rate", "0", "--request-ttl", "3")


def kill(process: Process) -> None:
    process.fork.kill()
    stop(process)


@asynccontextmanager
async def two_processes(database: str) -> AsyncIterator[list[Process]]:
    both = [start_service(database), start_service(database)]
    try:
        yield both
    finally:
        for process in both:
            kill(process)


async def call_random_process(
    processes: list[Process],
    device: SimulatedDevice,
    work: Callable[[SimulatedDevice], Awaitable[bool]],
) -> bool:
    """Call ``work`` with the device, connected to a random process of the service.

    Return False if the process does not reply.
    """
    device.http.base_url = random.choice(processes).url
    try:
        return await work(device)
    except httpx2.HTTPError:
        return False


async def answer_commands(device: SimulatedDevice) -> bool:
    """Send a heartbeat. Then acknowledge each waiting command and submit its report."""
    if (await device.heartbeat()).status_code != 200:
        return False
    for command in await device.commands():
        request_id = command["requestId"]
        reply = await device.acknowledge(request_id, "received")
        if reply.status_code == 200:
            await device.submit(requestId=request_id)
    return True


async def send_heartbeat(device: SimulatedDevice) -> bool:
    return (await device.heartbeat()).status_code == 200


async def test_a_pending_request_leads_to_one_report_despite_killed_processes(
    tmp_path: Path,
) -> None:
    file = str(tmp_path / "service.db")
    key = write_key(file)
    async with (
        asyncio.timeout(TIMEOUT_S),
        two_processes(file) as processes,
        httpx2.AsyncClient(base_url=processes[0].url, timeout=60) as http,
    ):
        device = await SimulatedDevice(http, key).enrolled()
        until = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        body = {"kind": "network", "until": until, "instanceIds": [device.instance_id]}
        reply = await device.call("/console/api/pending-requests", **body)
        assert reply.status_code == 200, reply.text
        for _ in range(KILLS):
            await call_random_process(processes, device, send_heartbeat)
            index = random.randrange(len(processes))
            kill(processes[index])
            processes[index] = start_service(file)
        while not await list_reports(processes, device):
            await call_random_process(processes, device, answer_commands)
        while state_of_pending_request(file) != "done":
            await call_random_process(processes, device, answer_commands)
        # A completed pending request creates no more requests.
        for _ in range(10):
            await call_random_process(processes, device, answer_commands)
        result = await list_reports(processes, device)
        assert len(result) == 1


def state_of_pending_request(file: str) -> str:
    with closing(Database(file, connections=1)) as database:
        return database.read(lambda session: session.scalars(select(PendingRequest.state)).one())


async def list_reports(processes: list[Process], device: SimulatedDevice) -> list[str]:
    """Return the ids of the reports, or an empty list if the process does not reply."""
    results: list[str] = []

    async def work(device: SimulatedDevice) -> bool:
        results.extend(report["reportId"] for report in (await device.detail())["reports"])
        return True

    await call_random_process(processes, device, work)
    return results
