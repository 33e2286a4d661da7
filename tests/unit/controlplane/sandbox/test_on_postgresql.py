"""Tests that the figures of a merchant are the same on PostgreSQL and SQLite."""

import json
import uuid
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.wire.codec import encode, validate
from controlplane.analytics.messages import FiguresQuery
from controlplane.analytics.registry import OPERATIONS
from controlplane.analytics.sales_table import sales_table
from controlplane.merchant.locations import set_zone
from controlplane.merchant.rebuild import rebuild
from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.sandbox.loading import continue_sales, load, stored_generator, stored_plan
from controlplane.sandbox.ndjson import export, load_lines
from controlplane.sandbox.plan import ORGANIZATION, Plan
from controlplane.settings import Settings
from controlplane.storage.database import Database
from tests.postgresql import new_database
from tests.unit.controlplane.running_service import FakeClock

NOW = FakeClock().now
KEY = b"k" * 32
CALLER = Caller(uuid.uuid4(), ORGANIZATION, can_write=False)
SINCE = NOW - timedelta(days=1)
PLAN = Plan(locations=4, days=30, sales_per_day=12, goods=9, until=NOW.date(), is_awkward=True)
QUERY: dict[str, Any] = {"locationId": "loc-0001", "locationMode": "all", "period": "last7"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with new_database() as result:
        yield result


def read_replies(database: Database) -> dict[str, Any]:
    """Return the reply of each operation by its path, and the table of sales as ``sales``."""
    replies = {}
    for path, operation in OPERATIONS.items():
        query = QUERY if "pulse" not in path.lower() else {"locationId": "loc-0001"}
        body = operation.parse(json.dumps(query).encode())

        def work(session: Any, operation: Any = operation, body: Any = body) -> bytes:
            context = RequestContext(session, CALLER, NOW, Settings(), KEY)
            return encode(operation.run(context, body))

        replies[path] = json.loads(database.read(work))

    def table(session: Any) -> str:
        context = RequestContext(session, CALLER, NOW, Settings(), KEY)
        return sales_table(context, validate(QUERY, FiguresQuery))

    return replies | {"sales": database.read(table)}


def load_and_change_merchant(database: Database) -> list[dict[str, int]]:
    """Load a merchant, add sales, and change a time zone.

    Return the numbers of wrong rollups that two rebuilds fixed: one after the sales were added,
    and one after the time zone was changed.
    """
    database.write(lambda session: load(session, PLAN, SINCE))
    generator = database.read(lambda s: stored_generator(s, stored_plan(s, ORGANIZATION)))
    database.write(lambda session: continue_sales(session, *generator, SINCE, NOW))
    wrong_counts = [database.write(rebuild)]
    database.write(
        lambda session: set_zone(session, (ORGANIZATION, "loc-0001"), "Asia/Kathmandu", NOW)
    )
    return [*wrong_counts, database.write(rebuild)]


@pytest.mark.medium
@pytest.mark.needs("postgresql")
def test_postgresql_and_sqlite_return_the_same_figures(url: str, tmp_path: Path) -> None:
    with (
        closing(Database(url)) as postgresql,
        closing(Database(str(tmp_path / "sqlite.db"))) as sqlite,
        closing(Database(str(tmp_path / "imported.db"))) as imported,
    ):
        for database in (postgresql, sqlite):
            assert all(
                set(wrong_counts.values()) == {0}
                for wrong_counts in load_and_change_merchant(database)
            )
        assert read_replies(postgresql) == read_replies(sqlite)
        lines = postgresql.read(lambda session: list(export(session, ORGANIZATION)))
        imported.write(lambda session: load_lines(session, lines))
        assert read_replies(imported) == read_replies(sqlite)
