"""Tests that read operations do not change the database."""

from typing import Any

import pytest
from sqlalchemy import select

from agent.wire import routes
from controlplane.storage.layout import Base
from tests.unit.controlplane.running_service import RunningService


def read_all_rows(service: RunningService) -> dict[str, list[Any]]:
    """Return all rows of all tables."""
    return service.database.read(
        lambda session: {
            table.name: [tuple(row) for row in session.execute(select(table))]
            for table in Base.metadata.sorted_tables
        }
    )


@pytest.mark.parametrize(
    "path", [routes.CURRENT, routes.LIST_DEVICES, routes.DEVICE_DETAIL, routes.REPORT_DETAIL]
)
async def test_reading_operations_change_nothing(service: RunningService, path: str) -> None:
    device = await service.device().enrolled()
    await device.create_request()
    report = (await device.submit()).json()["reportId"]
    service.clock.advance(service.core.settings.request_ttl_s)  # the request has expired
    bodies = {
        routes.DEVICE_DETAIL: {"instanceId": device.instance_id},
        routes.REPORT_DETAIL: {"reportId": report},
    }
    before = read_all_rows(service)
    first, again = [await device.call(path, **bodies.get(path, {})) for _ in range(2)]
    assert first.status_code == 200
    assert first.content == again.content
    assert read_all_rows(service) == before
    # Without rows, the comparison would be meaningless.
    assert sum(map(len, before.values())) >= 5
