"""Tests that a report belongs to the location where it was created, even if its device moves."""

import json
from typing import Any

from agent.wire.codec import to_plain
from controlplane.web.console_api import PREFIX
from tests.fixtures.payloads import small_venue
from tests.unit.controlplane.running_service import RunningService


async def read_contents(service: RunningService, key: str) -> list[list[Any]]:
    """Return three lists: the printers, the devices that `overview` returns for the text "laser" in
    reports, and the devices that `healths` returns for the same text.
    """
    results = []
    for call, body, field in (
        ("printers", {}, "printers"),
        ("overview", {"search": "laser"}, "devices"),
        ("healths", {"search": "laser"}, "devices"),
    ):
        reply = await service.post(PREFIX + call, json.dumps(body), api_key=key)
        results.append(reply.json()[field])
    return results


async def test_contents_of_reports_at_another_location_are_hidden(
    service: RunningService,
) -> None:
    device = service.device()
    device.binding_id = (await device.enroll(locationId="loc-1")).json()["bindingId"]
    await device.submit(to_plain(small_venue()), outcome="completed")
    assert all(await read_contents(service, service.make_key(locations=("loc-1",))))
    key = service.make_key(locations=("loc-2",))
    await device.enroll(locationId="loc-2")
    assert await read_contents(service, key) == [[], [], []]
    devices = (await service.post(PREFIX + "overview", "{}", api_key=key)).json()["devices"]
    assert [device_row["reports"] for device_row in devices] == [[]]


async def test_changes_at_another_location_are_hidden(service: RunningService) -> None:
    device = service.device()
    for location in ("loc-1", "loc-2"):
        device.binding_id = (await device.enroll(locationId=location)).json()["bindingId"]
        reply = await device.submit(to_plain(small_venue()), outcome="completed")
        assert reply.status_code == 200
    body = json.dumps({"instanceId": device.instance_id})
    reports, changes = {}, {}
    for locations in ((), ("loc-2",)):
        key = service.make_key(locations=locations)
        output = (await service.post(PREFIX + "device", body, api_key=key)).json()
        reports[locations] = len(output["detail"]["reports"])
        changes[locations] = len(output["changes"])
    assert reports == {(): 2, ("loc-2",): 1}
    assert changes == {(): 1, ("loc-2",): 0}
