"""Tests of the names, time zones and opening hours of organizations and locations."""

import uuid
from typing import Any

from agent.wire import routes
from controlplane.accounts.names import names_of
from controlplane.devices.locations.locations import schedules, set_zone_and_hours, zones
from controlplane.merchant.locations import name_location, name_organization
from controlplane.storage.merchant.merchant_tables import NO_CURRENCY, Location
from tests.unit.controlplane.accounts.people import OVERVIEW, Browser, make_user
from tests.unit.controlplane.running_service import RunningService

LOCATION = ("org-0001", "loc-0001")
"""A location: its organization and its id."""


async def read_names(service: RunningService) -> tuple[Any, Any]:
    """Return the names of a device's location and organization.

    Three operations return these names. The function fails if their results differ.
    """
    listed_device = (await service.post(routes.LIST_DEVICES)).json()["devices"][0]
    console_device = (await service.post(OVERVIEW)).json()["devices"][0]["device"]
    body = f'{{"instanceId": "{listed_device["instanceId"]}"}}'
    detail = (await service.post(routes.DEVICE_DETAIL, body)).json()["device"]
    pairs = {
        (each["locationName"], each["organizationName"])
        for each in (listed_device, console_device, detail)
    }
    (names,) = pairs
    return names


async def test_devices_name_their_location_and_organization(
    service: RunningService,
) -> None:
    await service.device().enrolled()
    assert await read_names(service) == (None, None)
    now = service.clock()
    service.database.write(
        lambda session: name_organization(session, LOCATION[0], "Harbour Ltd", now)
    )
    assert await read_names(service) == (None, "Harbour Ltd")
    service.database.write(lambda session: name_location(session, LOCATION, "Harbour", now))
    assert await read_names(service) == ("Harbour", "Harbour Ltd")
    service.database.write(lambda session: name_location(session, LOCATION, "Old Harbour", now))
    other = ("org-0002", "loc-0001")
    service.database.write(lambda session: name_location(session, other, "Elsewhere", now))
    assert await read_names(service) == ("Old Harbour", "Harbour Ltd")


def test_the_name_of_a_location_applies_only_in_its_organization(service: RunningService) -> None:
    now = service.clock()
    service.database.write(lambda session: name_location(session, LOCATION, "Harbour", now))
    result = service.database.read(
        lambda session: names_of(session, [("org-0002", "loc-0001"), ("org-0002", "x"), LOCATION])
    )
    assert result.location(*LOCATION) == "Harbour"
    assert result.location("org-0002", "loc-0001") is None
    assert result.organization("org-0001") == "org-0001"
    assert result.organization("org-0002") is None


async def test_figures_of_a_location_without_sales_return_404(service: RunningService) -> None:
    now = service.clock()
    service.database.write(lambda session: name_location(session, LOCATION, "Harbour", now))
    body = '{"locationId": "loc-0001", "locationMode": "single", "period": "today"}'
    reply = await service.post("/api/public/v1/analytics/dashboard", body)
    assert reply.status_code == 404
    assert reply.json()["code"] == "location_not_found"


async def test_a_location_has_one_time_zone(service: RunningService) -> None:
    def work(session: Any) -> tuple[str | None, Any, str]:
        now = service.clock()
        set_zone_and_hours(session, LOCATION, "Europe/Riga", ["Mon-Fri 08:00-22:00"], now)
        name_location(session, LOCATION, "Harbour", now)
        session.flush()
        row = session.query(Location).one()
        first = row.zone
        assert not set_zone_and_hours(session, LOCATION, "Asia/Dubai", None, now)
        session.flush()
        session.refresh(row)
        return first, (row.zone, zones(session, {LOCATION})[LOCATION]), row.currency

    first, second, currency = service.database.write(work)
    assert (first, second, currency) == ("Europe/Riga", ("Asia/Dubai",) * 2, NO_CURRENCY)


async def test_setting_the_time_zone_of_a_location_gives_it_no_name(
    service: RunningService,
) -> None:
    now = service.clock()
    service.database.write(
        lambda session: set_zone_and_hours(session, LOCATION, "Europe/Riga", None, now)
    )
    await service.device().enrolled()
    assert await read_names(service) == (None, None)


def test_opening_hours_of_a_location_with_an_unknown_zone_are_in_utc(
    service: RunningService,
) -> None:
    now, other = service.clock(), ("org-0001", "loc-0002")

    def work(session: Any) -> list[str]:
        for location, zone in ((LOCATION, "Europe/Riga"), (other, "UTC")):
            set_zone_and_hours(session, location, zone, ["Mon-Fri 08:00-22:00"], now)
        session.query(Location).filter_by(id="loc-0002").one().zone = "No/Such"
        session.flush()
        schedule = schedules(session, now)
        return [hours.zone for location in (LOCATION, other) if (hours := schedule[location].hours)]

    assert service.database.write(work) == ["Europe/Riga", "UTC"]


async def test_a_request_names_the_user_who_created_it(service: RunningService) -> None:
    make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    device = await service.device().enrolled()
    body = {"instanceId": device.instance_id, "kind": "network"}
    assert (await browser.post(routes.CREATE_REQUEST, body)).status_code == 200
    row = (await browser.post(OVERVIEW)).json()["devices"][0]
    assert [each["requestedBy"] for each in row["requests"]] == ["Ada"]
    assert uuid.UUID((await device.detail())["requests"][0]["requestedById"])
