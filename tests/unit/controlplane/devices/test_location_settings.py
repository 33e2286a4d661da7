"""Tests of the settings of locations, which users change in the console."""

from typing import Any

import httpx2
import pytest
from sqlalchemy import select

from controlplane.accounts.keys.key_store import DEFAULT_ORGANIZATION
from controlplane.devices.locations.locations import schedules
from controlplane.devices.locations.operations import PREFIX
from controlplane.settings import Settings
from controlplane.storage.audit_tables import AuditEntry
from tests.unit.controlplane.accounts.people import (
    MEMORY_KIB,
    PASSES,
    Browser,
    make_locations,
    make_user,
)
from tests.unit.controlplane.running_service import RunningService

LOCATION_KEY = (DEFAULT_ORGANIZATION, "loc-0001")
WINDOW = {"locationId": "loc-0001", "instanceId": None, "since": None, "reason": "new cables"}


@pytest.fixture
def settings() -> Settings:
    return Settings(
        rate_per_s=0, argon2_memory_kib=MEMORY_KIB, argon2_passes=PASSES, refusal_delay_s=0
    )


@pytest.fixture
async def browser(service: RunningService) -> Browser:
    make_user(service)
    make_locations(service, "loc-0001")
    browser = Browser(service)
    assert (await browser.sign_in()).status_code == 200
    return browser


async def change(browser: Browser, operation: str, **body: Any) -> dict[str, Any]:
    reply = await browser.post(f"{PREFIX}/{operation}", body)
    assert reply.status_code == 200, reply.text
    result: dict[str, Any] = reply.json()
    return result


async def read_location(browser: Browser, number: int = 0) -> dict[str, Any]:
    record: dict[str, Any] = (await browser.post(PREFIX)).json()["locations"][number]
    return record


def error_of(reply: httpx2.Response) -> tuple[int, object]:
    """Return the status, and the errors by field or else the detail."""
    return reply.status_code, reply.json().get("errors") or reply.json()["detail"]


async def test_name_time_zone_and_hours_are_changed_and_logged(
    service: RunningService, browser: Browser
) -> None:
    await change(browser, "name", locationId="loc-0001", name=" Old harbour ")
    await change(browser, "name-organization", name="Harbour Ltd")
    hours = ["Mon-Fri 08:00-22:00", "Sat 10:00-02:00"]
    await change(
        browser, "hours", locationId="loc-0001", timeZone="Europe/Riga", openingHours=hours
    )
    record = await read_location(browser)
    assert (record["name"], record["timeZone"]) == ("Old harbour", "Europe/Riga")
    assert record["openingHours"] == hours
    assert (await browser.post(PREFIX)).json()["organizationName"] == "Harbour Ltd"
    await change(browser, "hours", locationId="loc-0001", timeZone="Europe/Riga", openingHours=None)
    assert (await read_location(browser))["openingHours"] is None
    query = select(AuditEntry.operation, AuditEntry.actor_name)
    entries = service.database.read(lambda session: [tuple(row) for row in session.execute(query)])
    for operation in ("location.name", "location.hours", "organization.name"):
        assert (operation, "ada@example.com") in entries


async def test_a_new_location_gets_the_next_free_id(browser: Browser) -> None:
    added = await change(browser, "add", locationId=None, name="Quay", timeZone="Europe/Riga")
    assert added == {"locationId": "loc-0002", "name": "Quay"}
    location_with_id = await change(
        browser, "add", locationId="quay-9", name="Quay 9", timeZone="UTC"
    )
    assert location_with_id["locationId"] == "quay-9"
    again = {"locationId": "quay-9", "name": "Quay", "timeZone": "UTC"}
    reply = await browser.post(f"{PREFIX}/add", again)
    assert error_of(reply) == (409, "the location id quay-9 is already in use")


async def test_the_end_of_a_maintenance_window_is_in_the_time_zone_of_the_location(
    service: RunningService, browser: Browser
) -> None:
    await change(browser, "hours", locationId="loc-0001", timeZone="Europe/Riga", openingHours=None)
    added = await change(browser, "maintenance", **WINDOW, until="2026-12-01T06:00")
    assert added["until"] == "2026-12-01T04:00:00Z"
    (window,) = (await read_location(browser))["maintenance"]
    assert (window["until"], window["reason"]) == (added["until"], "new cables")
    schedule = service.database.read(
        lambda session: schedules(session, service.clock(), [LOCATION_KEY])
    )
    assert len(schedule[LOCATION_KEY].maintenance) == 1
    body = {"locationId": "loc-0001", "instanceId": None}
    assert await change(browser, "end-maintenance", **body) == {"ended": 1}
    assert (await read_location(browser))["maintenance"] == []


async def test_a_maintenance_window_of_a_device_has_its_name_and_must_be_at_its_location(
    service: RunningService, browser: Browser
) -> None:
    device = await service.device().enrolled()
    window_of_device = WINDOW | {"instanceId": device.instance_id}
    await change(browser, "maintenance", **window_of_device, until="2026-12-01T06:00")
    record = await read_location(browser)
    assert [window["deviceName"] for window in record["maintenance"]] == ["till-01"]
    assert record["deviceCount"] == 1
    make_locations(service, "loc-0002")
    elsewhere = window_of_device | {"locationId": "loc-0002", "until": "2026-12-01T06:00"}
    assert (await browser.post(f"{PREFIX}/maintenance", elsewhere)).status_code == 404


@pytest.mark.parametrize(
    ("operation", "body", "expected"),
    [
        (
            "hours",
            {"locationId": "loc-0001", "timeZone": "Mars", "openingHours": None},
            (400, {"timeZone": ["'Mars' is not a time zone. Use a name like Europe/Riga"]}),
        ),
        (
            "hours",
            {"locationId": "loc-0001", "timeZone": "UTC", "openingHours": ["9-5"]},
            (400, {"openingHours": ["'9-5' does not have the form \"Mon-Fri 08:00-22:00\""]}),
        ),
        (
            "maintenance",
            WINDOW | {"until": "2026-01-01"},
            (400, {"until": ["must be in the future, and after the start"]}),
        ),
        (
            "maintenance",
            WINDOW | {"until": "soon"},
            (400, {"until": ["'soon' is not a date and time such as 2026-12-01T06:00"]}),
        ),
        ("name", {"locationId": "loc-9", "name": "Quay"}, (404, "there is no location loc-9")),
    ],
    ids=["zone", "hours", "past", "time", "location"],
)
async def test_a_wrong_value_is_refused_with_the_reason(
    browser: Browser, operation: str, body: dict[str, Any], expected: tuple[int, object]
) -> None:
    assert error_of(await browser.post(f"{PREFIX}/{operation}", body)) == expected
