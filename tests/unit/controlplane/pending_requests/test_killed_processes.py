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
from tests.unit.controlplane.test_process import write_key

pytestmark = [
    pytest.mark.medium,
    pytest.mark.skipif(sys.platform == "win32", reason="the test sends SIGKILL"),
]
WITHIN_S = 300
KILLS = amount(medium=1, large=6)


class ServiceProcess:
    """A process of the service that tests can kill, and start again on another port."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._process: asyncio.subprocess.Process | None = None
        self.url = ""

    async def start(self) -> None:
        words = (
            sys.executable, "-m", "controlplane", "serve", "--port", "0", "--rate", "0",
            "--request-ttl", "3",
        )  # fmt: skip
        self._process = await asyncio.create_subprocess_exec(
            *words, "--database", self._database,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        assert self._process.stdout is not None
        line = (await self._process.stdout.readline()).decode()
        assert line.startswith("listening on "), line
        self.url = line.split()[-1]

    async def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        await self._process.communicate()


@asynccontextmanager
async def two_processes(database: str) -> AsyncIterator[list[ServiceProcess]]:
    both = [ServiceProcess(database), ServiceProcess(database)]
    for process in both:
        await process.start()
    try:
        yield both
    finally:
        for process in both:
            await process.kill()


async def call_random_process(
    processes: list[ServiceProcess],
    key: str,
    work: Callable[[SimulatedDevice], Awaitable[bool]],
    original: SimulatedDevice,
) -> bool:
    """Call ``work`` with a copy of a device that is connected to a random process of the service.

    Return False if the process does not reply.
    """
    url = random.choice(processes).url
    try:
        async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
            device = SimulatedDevice(http, key)
            device.instance_id, device.binding_id = original.instance_id, original.binding_id
            return await work(device)
    except httpx2.HTTPError:
        return False


async def take_and_answer(device: SimulatedDevice) -> bool:
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
    async with asyncio.timeout(WITHIN_S), two_processes(file) as processes:
        async with httpx2.AsyncClient(base_url=processes[0].url, timeout=60) as http:
            device = await SimulatedDevice(http, key).enrolled()
            until = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
            body = {"kind": "network", "until": until, "instanceIds": [device.instance_id]}
            headers = {"Authorization": f"Bearer {key}"}
            reply = await http.post("/console/api/pending-requests", json=body, headers=headers)
            assert reply.status_code == 200, reply.text
        for _ in range(KILLS):
            await call_random_process(processes, key, send_heartbeat, device)
            victim = random.choice(processes)
            await victim.kill()
            await victim.start()
        while not await reports(processes, key, device):
            await call_random_process(processes, key, take_and_answer, device)
        # A completed pending request creates no more requests.
        while state_of_pending(file) != "done":
            await call_random_process(processes, key, take_and_answer, device)
        for _ in range(10):
            await call_random_process(processes, key, take_and_answer, device)
        result = await reports(processes, key, device)
        assert len(result) == 1


def state_of_pending(file: str) -> str:
    with closing(Database(file, connections=1)) as database:
        return database.read(lambda session: session.scalars(select(PendingRequest.state)).one())


async def reports(
    processes: list[ServiceProcess], key: str, original: SimulatedDevice
) -> list[str]:
    results: list[str] = []

    async def work(device: SimulatedDevice) -> bool:
        results.extend(report["reportId"] for report in (await device.detail())["reports"])
        return True

    await call_random_process(processes, key, work, original)
    return results
