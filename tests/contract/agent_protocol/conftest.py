"""Fixtures that run the service on a loopback socket, with a generated merchant."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn

from controlplane.accounts.oauth.metadata import RESOURCE_PATH as PATH
from controlplane.sandbox.loading import load
from controlplane.sandbox.plan import Plan
from controlplane.server import bind, url_of
from controlplane.settings import Settings
from controlplane.storage.database import Database
from controlplane.web.app import build_app
from controlplane.web.core import Core
from tests.contract.agent_protocol.served import ServedApp
from tests.unit.controlplane.accounts.people import MEMORY_KIB, PASSES
from tests.unit.controlplane.running_service import FakeClock

SHUTDOWN_TIMEOUT_S = 300


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[ServedApp]:
    """The service. Calls without a credential get the API key of the tests."""
    async with serving(tmp_path) as server:
        yield server


@pytest.fixture
async def served_without_added_key(tmp_path: Path) -> AsyncIterator[ServedApp]:
    """The service. Calls without a credential stay without one."""
    async with serving(tmp_path, adds_api_key=False) as server:
        yield server


@asynccontextmanager
async def serving(
    folder: Path, *, adds_api_key: bool = True, plan: Plan | None = None
) -> AsyncIterator[ServedApp]:
    clock = FakeClock()
    database = Database(str(folder / "service.db"))
    default_plan = Plan(
        locations=2, days=5, goods=12, sales_per_day=8, until=clock.now.date(), is_awkward=True
    )
    plan = plan or default_plan
    database.write(lambda session: load(session, plan, clock.now))
    settings = Settings(rate_per_s=0, argon2_memory_kib=MEMORY_KIB, argon2_passes=PASSES)
    core = Core(database, settings, clock)
    server = ServedApp(build_app(core), database, clock, adds_api_key=adds_api_key)
    config = uvicorn.Config(
        server, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=2
    )
    listener = bind("127.0.0.1", 0)
    server.url = url_of(listener) + PATH
    running = uvicorn.Server(config)
    task = asyncio.create_task(running._serve(sockets=[listener]))
    try:
        yield server
    finally:
        running.should_exit = True
        await asyncio.wait_for(task, SHUTDOWN_TIMEOUT_S)
        listener.close()
        core.close()
        database.close()
