"""Tests of session cookies at the public API: the user's membership limits the access."""

import pytest

from agent.wire import routes
from tests.unit.controlplane.accounts.people import Browser, make_user
from tests.unit.controlplane.running_service import RunningService


async def test_a_session_cookie_authorizes_calls_of_the_facade(service: RunningService) -> None:
    device = await service.device().enrolled()
    make_user(service)
    browser = Browser(service)
    assert (await browser.post(routes.LIST_DEVICES)).status_code == 401
    await browser.sign_in()
    devices = (await browser.post(routes.LIST_DEVICES)).json()["devices"]
    assert [each["instanceId"] for each in devices] == [device.instance_id]
    revoked = await browser.post(routes.REVOKE, {"instanceId": device.instance_id})
    assert revoked.json() == {"revoked": True}


@pytest.mark.parametrize(("location", "status"), [("loc-0001", 200), ("loc-0002", 403)])
async def test_a_session_is_limited_to_the_locations_of_the_membership(
    service: RunningService, location: str, status: int
) -> None:
    device = await service.device(location_id=location).enrolled()
    make_user(service, role="manager", locations=["loc-0001"])
    browser = Browser(service)
    await browser.sign_in()
    detail = await browser.post(routes.DEVICE_DETAIL, {"instanceId": device.instance_id})
    assert detail.status_code == status
