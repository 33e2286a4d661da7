"""Tests of retention: which old reports and requests are deleted, and which are kept."""

import asyncio
import json
import os
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event

from agent.wire.codec import encode
from controlplane.remote_control import retention
from controlplane.settings import Settings
from controlplane.web.background import _start_retention
from tests.fixtures.payloads import application_snapshot, small_venue
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.simulated_device import SimulatedDevice

RETENTION_PERIOD = timedelta(days=180)
NETWORK = json.loads(encode(small_venue()))
APPLICATION = json.loads(encode(application_snapshot()))


def delete_old_rows(service: RunningService) -> int:
    """Delete all rows that are too old. Return the number of deleted rows."""
    return sum(delete_in_steps(service))


def delete_in_steps(service: RunningService) -> list[int]:
    """Delete all rows that are too old. Return the number of rows that each step deleted."""
    steps: list[int] = []
    while rows := service.database.write(
        lambda session: retention.delete_old(session, service.clock(), RETENTION_PERIOD)
    ):
        steps.append(rows)
    return steps


async def submit_report(device: SimulatedDevice, kind: str = "network", **changes: str) -> str:
    payload = NETWORK if kind == "network" else APPLICATION
    answer = await device.submit(payload, kind=kind, **changes)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["reportId"])


async def read_ids(device: SimulatedDevice) -> tuple[set[str], set[str]]:
    """Return the ids of the stored reports and of the stored requests of a device."""
    detail = await device.detail()
    return (
        {stored_report["reportId"] for stored_report in detail["reports"]},
        {request["id"] for request in detail["requests"]},
    )


async def test_the_newest_report_of_each_kind_is_kept_at_any_age(service: RunningService) -> None:
    device, other = await service.device().enrolled(), await service.device().enrolled()
    old = [
        await submit_report(device),
        await submit_report(device, "application"),
        await submit_report(other),
    ]
    newest = await submit_report(device)
    service.clock.advance(RETENTION_PERIOD.total_seconds() + 1)
    assert delete_old_rows(service) == 1
    assert await read_ids(device) == ({old[1], newest}, set())
    assert (await read_ids(other))[0] == {old[2]}
    assert delete_old_rows(service) == 0


async def test_rows_within_the_retention_period_are_kept(service: RunningService) -> None:
    device = await service.device().enrolled()
    reports = {await submit_report(device) for _ in range(3)}
    service.clock.advance(RETENTION_PERIOD.total_seconds())
    assert delete_old_rows(service) == 0
    assert (await read_ids(device))[0] == reports


async def test_a_request_is_kept_as_long_as_its_report(service: RunningService) -> None:
    device = await service.device().enrolled()
    old_request, newest_request, expired = [await device.create_request() for _ in range(3)]
    await submit_report(device, requestId=old_request)
    newest = await submit_report(device, requestId=newest_request)
    service.clock.advance(RETENTION_PERIOD.total_seconds() + 1)
    still_open = await device.create_request()
    await device.create_request()  # this call marks overdue requests as expired
    assert expired != still_open
    assert delete_old_rows(service) == 3  # old_request with its report, and the expired request
    reports, requests = await read_ids(device)
    assert reports == {newest}
    assert newest_request in requests
    assert still_open in requests
    assert not {old_request, expired} & requests


async def test_old_reports_are_deleted_in_small_steps(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "ROWS_A_STEP", 2)
    device = await service.device().enrolled()
    for _ in range(6):
        newest = await submit_report(device)
    service.clock.advance(RETENTION_PERIOD.total_seconds() + 1)
    assert delete_in_steps(service) == [2, 2, 1]
    assert (await read_ids(device))[0] == {newest}


async def test_old_reports_are_deleted_by_default(service: RunningService) -> None:
    tasks = list(_start_retention(service.core))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert "retention" in {task.get_name() for task in tasks}
    assert Settings().keep_reports_s == RETENTION_PERIOD.total_seconds()


@pytest.mark.skipif(
    "VENUE_TEST_DATABASE" in os.environ, reason="the test reads the query plan of SQLite"
)
@pytest.mark.parametrize("index", ["reports_by_age", "requests_by_age"])
async def test_the_search_for_old_rows_uses_an_index(service: RunningService, index: str) -> None:
    statements: list[tuple[str, Any]] = []
    engine = service.database._engine

    def record(_connection: Any, _cursor: Any, sql: str, arguments: Any, *_: Any) -> None:
        statements.append((sql, arguments))

    event.listen(engine, "before_cursor_execute", record)
    delete_old_rows(service)
    event.remove(engine, "before_cursor_execute", record)
    with engine.connect() as connection:
        plans = [
            str(connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", arguments).all())
            for sql, arguments in statements
            if sql.startswith("SELECT")
        ]
    assert any(index in plan for plan in plans), plans
    assert not any("SCAN" in plan and "BY_AGE" not in plan.upper() for plan in plans), plans
