"""Fixtures: a database with a merchant's sales, and an AI assistant that queries these sales."""

from collections.abc import AsyncIterator, Iterator

import pytest

from controlplane.sandbox.loading import load
from controlplane.sandbox.plan import Plan
from controlplane.settings import Settings
from controlplane.storage.database import Database
from tests.unit.controlplane.agent_protocol.agent import Agent
from tests.unit.controlplane.running_service import FakeClock, service_on

NOW = FakeClock().now


@pytest.fixture(scope="package")
def sales_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = Database(str(tmp_path_factory.mktemp("agents") / "service.db"))
    plan = Plan(locations=4, days=40, sales_per_day=12, goods=30, until=NOW.date(), is_awkward=True)
    database.write(lambda session: load(session, plan, NOW))
    yield database
    database.close()


@pytest.fixture
async def agent(sales_database: Database) -> AsyncIterator[Agent]:
    settings = Settings(rate_per_s=0, organization_rate_per_s=0)
    async with service_on(sales_database, settings, FakeClock()) as service:
        yield Agent(service)
