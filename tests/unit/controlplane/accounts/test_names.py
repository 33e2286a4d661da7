"""Names of organizations and locations: said once, and in every record that has room for one."""

import uuid
from typing import Any

from controlplane.merchant.places import change_zone, name_location, name_organization

from agent.wire import routes
from controlplane.accounts.names import names_of
from controlplane.devices.locations.locations import set_location, zones
from controlplane.storage.merchant.merchant_tables import NO_CURRENCY, Location
from tests.unit.controlplane.accounts.people import OVERVIEW, Browser, make_person
from tests.unit.controlplane.running_service import RunningService

AT = ("org-0001", "loc-0001")


async def named(service: RunningService) -> tuple[Any, Any]:
    """Return the names in a list of devices, a device's record, and the console's list: all one."""
    listed = (await service.post(routes.LIST_DEVICES)).json()["devices"][0]
    shown = (await service.post(OVERVIEW)).json()["devices"][0]["device"]
    body = f'{{"instanceId": "{listed["instanceId"]}"}}'
    detail = (await service.post(routes.DEVICE_DETAIL, body)).json()["device"]
    found = {(each["locationName"], each["organizationName"]) for each in (listed, shown, detail)}
    (names,) = found
    return names


async def test_records_have_the_names_of_where_a_device_is(service: RunningService) -> None:
    await service.device().enrolled()
    assert await named(service) == (None, None)
    now = service.clock()
    service.database.write(lambda session: name_organization(session, AT[0], "Harbour Ltd", now))
    assert await named(service) == (None, "Harbour Ltd")
    service.database.write(lambda session: name_location(session, AT, "Harbour", now))
    assert await named(service) == ("Harbour", "Harbour Ltd")
    service.database.write(lambda session: name_location(session, AT, "Old Harbour", now))
    other = ("org-0002", "loc-0001")
    service.database.write(lambda session: name_location(session, other, "Elsewhere", now))
    assert await named(service) == ("Old Harbour", "Harbour Ltd")


def test_a_name_is_its_organization_s_own(service: RunningService) -> None:
    now = service.clock()
    service.database.write(lambda session: name_location(session, AT, "Harbour", now))
    found = service.database.read(
        lambda session: names_of(session, [("org-0002", "loc-0001"), ("org-0002", "x"), AT])
    )
    assert found.location(*AT) == "Harbour"
    assert found.location("org-0002", "loc-0001") is None
    assert found.organization("org-0001") == "org-0001"
    assert found.organization("org-0002") is None


async def test_a_place_where_nothing_is_sold_has_no_figures(service: RunningService) -> None:
    now = service.clock()
    service.database.write(lambda session: name_location(session, AT, "Harbour", now))
    body = '{"locationId": "loc-0001", "locationMode": "single", "period": "today"}'
    reply = await service.post("/api/public/v1/analytics/dashboard", body)
    assert reply.status_code == 404
    assert reply.json()["code"] == "location_not_found"


def test_a_zone_is_written_in_both_places(service: RunningService) -> None:
    def work(session: Any) -> tuple[str | None, Any, str]:
        set_location(session, AT, "Europe/Riga", ["Mon-Fri 08:00-22:00"])
        name_location(session, AT, "Harbour", service.clock())
        session.flush()
        row = session.query(Location).one()
        first = row.zone
        assert not change_zone(session, AT, "Asia/Dubai")
        session.flush()
        session.refresh(row)
        return first, (row.zone, zones(session, {AT})[AT]), row.currency

    first, now, currency = service.database.write(work)
    assert (first, now, currency) == ("Europe/Riga", ("Asia/Dubai",) * 2, NO_CURRENCY)


async def test_a_person_is_named_as_who_asked(service: RunningService) -> None:

    make_person(service)
    browser = Browser(service)
    await browser.sign_in()
    device = await service.device().enrolled()
    body = {"instanceId": device.instance_id, "kind": "network"}
    assert (await browser.post(routes.CREATE_REQUEST, body)).status_code == 200
    row = (await browser.post(OVERVIEW)).json()["devices"][0]
    assert [each["requestedBy"] for each in row["requests"]] == ["Ada"]
    assert uuid.UUID((await device.detail())["requests"][0]["requestedById"])
