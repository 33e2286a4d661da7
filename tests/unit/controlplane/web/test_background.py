"""Tests of the background loops of the service."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent.wire import routes
from controlplane.settings import Settings
from controlplane.storage.database import Database
from controlplane.web.background import background
from controlplane.web.core import Core
from tests.unit.controlplane.running_service import FakeClock, running_service

TIMEOUT_S = 300


@asynccontextmanager
async def webhook() -> AsyncIterator[tuple[str, "asyncio.Queue[bytes]"]]:
    """Yield the address of a webhook that answers 204, and the bodies that it received."""
    received: asyncio.Queue[bytes] = asyncio.Queue()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length: ")[1].split("\r\n")[0])
        received.put_nowait(await reader.readexactly(length))
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/hook", received


async def test_the_webhook_receives_a_report(database: Database) -> None:
    async with webhook() as (url, received):
        settings = Settings(rate_per_s=0, tracker_url=url, tracker_interval_s=0.01)
        async with running_service(database, settings) as service:
            device = await service.device().enrolled()
            report_id = (await device.submit()).json()["reportId"]
            async with background(service.core), asyncio.timeout(TIMEOUT_S):
                assert json.loads(await received.get())["reportId"] == report_id
                while (await tracker_status(device, report_id)) == "pending":
                    pass
            assert await tracker_status(device, report_id) == "sent"


async def tracker_status(device: Any, report_id: str) -> str:
    detail = await device.call(routes.REPORT_DETAIL, reportId=report_id)
    return str(detail.json()["trackerStatus"])


class FlakyDatabase(Database):
    """A database whose first write fails. Each later write calls ``on_later_write``."""

    def __init__(self, on_later_write: Callable[[], object]) -> None:
        self._on_later_write = on_later_write
        self._uses = 0

    def write(self, work: Callable[..., Any]) -> Any:
        self._uses += 1
        if self._uses == 1:
            raise OSError("the disk is not available")
        self._on_later_write()
        return 0, 0  # as `sweep` returns


async def test_a_background_loop_continues_after_an_error(caplog: pytest.LogCaptureFixture) -> None:
    loop, has_continued = asyncio.get_running_loop(), asyncio.Event()
    database = FlakyDatabase(lambda: loop.call_soon_threadsafe(has_continued.set))
    core = Core(database, Settings(sweep_interval_s=0.01), FakeClock())
    try:
        async with background(core), asyncio.timeout(TIMEOUT_S):
            await has_continued.wait()
    finally:
        core.close()
    assert "sweep failed, next attempt in 0.01 s" in caplog.text
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "sweep"]
