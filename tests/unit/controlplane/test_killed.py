"""Tests that an accepted report is stored exactly once, and that a notification is sent, even if a
process of the service or of PostgreSQL is killed.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from sqlalchemy import create_engine, text

from agent.wire import routes
from agent.wire.codec import encode
from tests import sizes
from tests.fixtures.payloads import small_venue
from tests.postgresql import new_database, postgresql
from tests.unit.controlplane.simulated_device import SimulatedDevice
from tests.unit.controlplane.test_process import TIMEOUT_S, Process, start, stop
from tests.unit.controlplane.test_workers import FORKED_WORKERS, workers_of

SUBMISSIONS = sizes.amount(medium=30, large=200)
CONCURRENT_SUBMISSIONS = 8
KILLED_AT = (1, SUBMISSIONS // 3, SUBMISSIONS * 3 // 4)[-sizes.amount(medium=1, large=3) :]
"""At each of these counts of accepted reports, the test kills the service. Other reports are being
submitted at that time.
"""
REPORT: dict[str, Any] = json.loads(encode(small_venue()))
BACKENDS = text("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'")
pytestmark = [
    pytest.mark.medium,
    pytest.mark.skipif(
        sys.platform != "linux", reason="the test kills processes with POSIX signals"
    ),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with postgresql() as url:
        yield url


@pytest.fixture
def postgresql_url(cluster: str) -> Iterator[str]:
    """Yield the URL of a separate database, without the devices and alerts of other tests."""
    with new_database(cluster) as url:
        yield url


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgresql", marks=[pytest.mark.needs("postgresql"), pytest.mark.large]),
    ]
)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "service.db")
    return str(request.getfixturevalue("postgresql_url"))


class Reports:
    """Reports that one device submits.

    ``numbers`` maps the ids of the reports to the numbers in their payloads.
    ``accepted`` maps the ids of accepted reports to the replies. ``failed`` is the number of
    submissions that failed.
    """

    def __init__(self, device: SimulatedDevice) -> None:
        self.device = device
        self.numbers = {str(uuid.uuid4()): number for number in range(SUBMISSIONS)}
        self.accepted: dict[str, bytes] = {}
        self.failed = 0

    def payload(self, report_id: str) -> dict[str, Any]:
        return REPORT | {"reportId": report_id, "scope": f"number {self.numbers[report_id]}"}

    async def submit(self, report_id: str) -> httpx2.Response:
        return await self.device.submit(self.payload(report_id), reportId=report_id)

    async def submit_all(self, kill: Callable[[], None], kill_at: int | None) -> None:
        """Make one attempt to submit each report that is not accepted yet.

        Calls ``kill`` when ``kill_at`` reports are accepted.
        """
        remaining = [report_id for report_id in self.numbers if report_id not in self.accepted]

        async def submit_some() -> None:
            nonlocal kill_at
            while remaining:
                report_id = remaining.pop()
                try:
                    reply = await self.submit(report_id)
                except httpx2.TransportError:
                    self.failed += 1
                    continue
                if reply.status_code == 200:
                    self.accepted[report_id] = reply.content
                else:
                    assert reply.status_code >= 500, reply.text
                    self.failed += 1
                if kill_at is not None and len(self.accepted) >= kill_at:
                    kill_at = None
                    kill()

        await asyncio.gather(*(submit_some() for _ in range(CONCURRENT_SUBMISSIONS)))

    async def check(self) -> None:
        """Check that each report is stored unchanged and once, and that a repeated submission gets
        the same reply.
        """
        assert self.accepted.keys() == self.numbers.keys()
        for report_id, reply in self.accepted.items():
            detail = await self.device.call(routes.REPORT_DETAIL, reportId=report_id)
            assert detail.json()["payload"] == self.payload(report_id)
            assert (await self.submit(report_id)).content == reply
        stored_ids = await self.list_ids()
        assert sorted(stored_ids) == sorted(self.numbers)

    async def list_ids(self) -> list[str]:
        results: list[str] = []
        cursor: dict[str, str] = {}
        for _ in range(SUBMISSIONS):
            page = (
                await self.device.call(
                    routes.DEVICE_DETAIL, instanceId=self.device.instance_id, **cursor
                )
            ).json()
            results += [report["reportId"] for report in page["reports"]]
            if page["nextCursor"] is None:
                break
            cursor = {"cursor": page["nextCursor"]}
        return results


def busiest_worker(workers: list[int]) -> int:
    """Return the worker with the most connections. Another worker might have none, so that killing
    it would interrupt no submission.
    """
    return max(workers, key=lambda pid: len(psutil.Process(pid).net_connections()))


def http_client(process: Process) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=process.url, timeout=TIMEOUT_S)


async def test_accepted_reports_survive_a_killed_service(database: str) -> None:
    reports = None
    for kill_at in (*KILLED_AT, None):
        process = start(database, "--rate", "0")
        try:
            async with http_client(process) as http:
                if reports is None:
                    reports = Reports(await SimulatedDevice(http, process.api_key).enrolled())
                reports.device.http = http
                # Reports that were accepted before this start are stored.
                assert set(reports.accepted) <= set(await reports.list_ids())
                await reports.submit_all(process.fork.kill, kill_at)
                if kill_at is None:
                    await reports.check()
        finally:
            code = stop(process)
        assert code == (0 if kill_at is None else -signal.SIGKILL)
    assert reports is not None
    assert reports.failed > 0


@pytest.mark.needs("postgresql")
@pytest.mark.large
@pytest.mark.parametrize("killed_process", ["worker", "backend"])
async def test_accepted_reports_survive_a_killed_worker_or_database_process(
    postgresql_url: str, killed_process: str
) -> None:
    """If a backend is killed, PostgreSQL ends all its other backends and recovers its data."""
    process = start(postgresql_url, "--rate", "0", "--workers", "2", module=FORKED_WORKERS)

    def kill() -> None:
        if killed_process == "worker":
            os.kill(busiest_worker(workers_of(process)), signal.SIGKILL)
            return
        engine = create_engine(postgresql_url)
        with engine.connect() as connection:
            own_pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
            pids = [pid for pid in connection.execute(BACKENDS).scalars() if pid != own_pid]
        engine.dispose()
        os.kill(pids[0], signal.SIGKILL)

    try:
        async with http_client(process) as http, asyncio.timeout(3 * TIMEOUT_S):
            reports = Reports(await SimulatedDevice(http, process.api_key).enrolled())
            await reports.submit_all(kill, SUBMISSIONS // 2)
            while len(reports.accepted) < SUBMISSIONS:
                await reports.submit_all(kill, None)
            await reports.check()
            assert reports.failed > 0
    finally:
        assert stop(process) == 0


class SlowReceiver:
    """A webhook that answers only after the test has set ``may_answer``.

    ``ids_and_types`` has the id and the event type of each request. ``arrived`` is set when a
    request has arrived.
    """

    def __init__(self) -> None:
        self.ids_and_types: list[str] = []
        self.arrived = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        body = await reader.readexactly(int(headers["content-length"]))
        self.ids_and_types.append(f"{headers['webhook-id']} {json.loads(body)['type']}")
        self.arrived.set()
        await self.may_answer.wait()
        with contextlib.suppress(ConnectionError):
            writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
            await writer.drain()
        writer.close()


async def test_a_notification_survives_a_service_that_is_killed_while_sending_it(
    database: str,
) -> None:
    """The attempt is repeated with the same id, so that the receiver recognizes it."""
    receiver = SlowReceiver()
    listener = await asyncio.start_server(receiver, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/in"
    # A device that is offline would fire a second alert, so the test needs a long --offline-after.
    options = ("--notify-url", url, "--notify-after", "0", "--rate", "0", "--offline-after", "1000")
    async with listener:
        process = start(database, *options)
        try:
            async with http_client(process) as http:
                device = await SimulatedDevice(http, process.api_key).enrolled()
                # A report without content is a fault, so the alert `broken` fires.
                assert (await device.submit()).status_code == 200
                async with asyncio.timeout(TIMEOUT_S):
                    await receiver.arrived.wait()
        finally:
            process.fork.kill()
            code = stop(process)
        assert code == -signal.SIGKILL
        receiver.arrived.clear()
        receiver.may_answer.set()
        process = start(database, *options)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await receiver.arrived.wait()
                await _wait_until_sent(database)
        finally:
            stop(process)
    assert len(receiver.ids_and_types) == 2
    assert len(set(receiver.ids_and_types)) == 1
    assert receiver.ids_and_types[0].endswith(" alert.firing")


@pytest.mark.needs("postgresql")
@pytest.mark.large
async def test_a_notification_survives_a_worker_that_is_killed_while_sending_it(
    postgresql_url: str,
) -> None:
    """The service continues, and repeats the attempt with the same id.

    The alert fires at the next evaluation, after up to 30 s. The attempt is repeated 15 s after it
    began, which is the sum of its time limit of 10 s and the first wait of 5 s.
    """
    receiver = SlowReceiver()
    listener = await asyncio.start_server(receiver, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}/in"
    options = ("--notify-url", url, "--notify-after", "0", "--rate", "0", "--offline-after", "1000")
    async with listener:
        process = start(postgresql_url, *options, "--workers", "2", module=FORKED_WORKERS)
        try:
            async with http_client(process) as http, asyncio.timeout(3 * TIMEOUT_S):
                device = await SimulatedDevice(http, process.api_key).enrolled()
                assert (await device.submit()).status_code == 200
                await receiver.arrived.wait()
                receiver.arrived.clear()
                os.kill(_worker_connected_to(workers_of(process), port), signal.SIGKILL)
                receiver.may_answer.set()
                await receiver.arrived.wait()
                await _wait_until_sent(postgresql_url)
        finally:
            code = stop(process)
    assert code == 0
    assert len(receiver.ids_and_types) == 2
    assert len(set(receiver.ids_and_types)) == 1
    assert receiver.ids_and_types[0].endswith(" alert.firing")
    engine = create_engine(postgresql_url)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM alerts")).scalar_one() == 1
    engine.dispose()


def _worker_connected_to(workers: list[int], port: int) -> int:
    """Return the only worker with a connection to this port."""
    (result,) = [
        pid
        for pid in workers
        if any(
            each.raddr and each.raddr.port == port for each in psutil.Process(pid).net_connections()
        )
    ]
    return result


async def _wait_until_sent(database: str) -> None:
    """Wait until the notification is stored as sent. Check that there is no other notification."""
    engine = create_engine(database if "://" in database else f"sqlite:///{database}")
    try:
        while True:
            with engine.connect() as connection:
                rows = connection.execute(text("SELECT status FROM notifications")).all()
            assert len(rows) == 1
            if rows[0][0] == "sent":
                return
            await asyncio.sleep(0.1)
    finally:
        engine.dispose()
