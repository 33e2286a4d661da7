"""Tests of the calls of operators, who create requests, and list and revoke devices."""

import json
import uuid
from typing import Any

import pytest

from agent.wire import routes
from agent.wire.codec import validate
from agent.wire.limits import CURSOR_MAX
from agent.wire.operator_operations import DeviceDetailReply, ListDevicesReply
from controlplane.remote_control.retention import sweep
from controlplane.settings import Settings
from controlplane.web.pipeline import PAGE_MAX
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.simulated_device import SimulatedDevice


@pytest.fixture
def settings() -> Settings:
    return Settings(rate_per_s=0, page_size=2, open_requests_max=5)


async def all_pages(device: SimulatedDevice, path: str, **body: Any) -> list[dict[str, Any]]:
    pages: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while len(pages) < 20:
        response = await device.call(path, **body, **cursor)
        assert response.status_code == 200, response.text
        pages.append(response.json())
        next_cursor = pages[-1]["nextCursor"]
        if next_cursor is None:
            return pages
        assert len(next_cursor) <= CURSOR_MAX
        cursor = {"cursor": next_cursor}
    raise AssertionError("the listing does not end")


async def test_a_request_is_queued_for_the_binding(service: RunningService) -> None:
    device = await service.device().enrolled()
    response = await device.call(
        routes.CREATE_REQUEST, instanceId=device.instance_id, kind="network"
    )
    reply = response.json()
    assert (reply["version"], reply["status"], reply["kind"]) == (1, "queued", "network")
    assert reply["bindingId"] == device.binding_id
    assert reply["expiresAt"].startswith("2026-11-20T12:15:00")


async def test_a_request_for_a_revoked_or_unknown_device_is_refused(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    await device.call(routes.REVOKE, instanceId=device.instance_id)
    refused = await device.call(
        routes.CREATE_REQUEST, instanceId=device.instance_id, kind="network"
    )
    assert (refused.status_code, refused.json()["code"]) == (409, "device_revoked")
    refused = await device.call(routes.CREATE_REQUEST, instanceId=str(uuid.uuid4()), kind="network")
    assert (refused.status_code, refused.json()["code"]) == (404, "device_not_found")


async def test_the_number_of_open_requests_is_limited(service: RunningService) -> None:
    device = await service.device().enrolled()
    for _ in range(service.core.settings.open_requests_max):
        await device.create_request()
    refused = await device.call(
        routes.CREATE_REQUEST, instanceId=device.instance_id, kind="network"
    )
    assert (refused.status_code, refused.json()["code"]) == (409, "too_many_open_requests")
    service.clock.advance(service.core.settings.request_ttl_s)
    await device.create_request()


async def test_devices_are_listed_page_by_page(service: RunningService) -> None:
    devices = [await service.device().enrolled() for _ in range(5)]
    pages = await all_pages(devices[0], routes.LIST_DEVICES)
    assert [len(page["devices"]) for page in pages] == [2, 2, 1]
    instance_ids = [entry["instanceId"] for page in pages for entry in page["devices"]]
    assert instance_ids == [device.instance_id for device in devices]
    validate(pages[0], ListDevicesReply)


async def test_a_full_last_page_has_no_cursor(service: RunningService) -> None:
    devices = [await service.device().enrolled() for _ in range(2)]
    assert len(await all_pages(devices[0], routes.LIST_DEVICES)) == 1


async def test_history_is_listed_newest_first_with_one_cursor(service: RunningService) -> None:
    device = await service.device().enrolled()
    requests = [await device.create_request() for _ in range(5)]
    reports = [(await device.submit()).json()["reportId"] for _ in range(3)]
    pages = await all_pages(device, routes.DEVICE_DETAIL, instanceId=device.instance_id)
    assert [entry["id"] for page in pages for entry in page["requests"]] == requests[::-1]
    assert [entry["reportId"] for page in pages for entry in page["reports"]] == reports[::-1]
    assert [len(page["reports"]) for page in pages] == [2, 1, 0]
    validate(pages[0], DeviceDetailReply)


async def test_a_cursor_skips_and_repeats_nothing_when_requests_are_added(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    requests = [await device.create_request() for _ in range(4)]
    body = {"instanceId": device.instance_id}
    first = (await device.call(routes.DEVICE_DETAIL, **body)).json()
    await device.create_request()
    second = (await device.call(routes.DEVICE_DETAIL, **body, cursor=first["nextCursor"])).json()
    assert [entry["id"] for entry in second["requests"]] == requests[1::-1]


@pytest.mark.parametrize("cursor", ["", "x", "😀", "A" * 128])
async def test_an_invalid_cursor_is_refused(service: RunningService, cursor: str) -> None:
    device = await service.device().enrolled()
    refused = await device.call(routes.LIST_DEVICES, cursor=cursor)
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_cursor")


async def test_the_length_of_a_cursor_is_limited(service: RunningService) -> None:
    refused = await service.device().call(routes.LIST_DEVICES, cursor="A" * 129)
    assert list(refused.json()["errors"]) == ["cursor"]


async def test_a_second_revocation_changes_nothing(service: RunningService) -> None:
    device = await service.device().enrolled()
    for _ in range(2):
        response = await device.call(routes.REVOKE, instanceId=device.instance_id)
        assert response.json() == {"revoked": True}
        record = (await device.detail())["device"]
        assert record["revokedAt"].startswith("2026-11-20T12:00:00")
        assert record["online"] is False
        service.clock.advance(60)


async def test_a_key_has_access_only_to_its_locations(service: RunningService) -> None:
    permitted_device = await service.device(location_id="loc-0001").enrolled()
    foreign_device = await service.device(location_id="loc-0002").enrolled()
    report = (await foreign_device.submit()).json()["reportId"]
    permitted_device.api_key = service.make_key(locations=["loc-0001", "loc-0003"])
    pages = await all_pages(permitted_device, routes.LIST_DEVICES)
    assert [entry["instanceId"] for entry in pages[0]["devices"]] == [permitted_device.instance_id]
    instance = {"instanceId": foreign_device.instance_id}
    for refused in (
        await permitted_device.call(routes.DEVICE_DETAIL, **instance),
        await permitted_device.call(routes.CREATE_REQUEST, **instance, kind="network"),
        await permitted_device.call(routes.REVOKE, **instance),
        await permitted_device.call(routes.REPORT_DETAIL, reportId=report),
        await permitted_device.challenge(locationId="loc-0002"),
        await permitted_device.call(
            routes.HEARTBEAT, bindingId=foreign_device.binding_id, foreground=False
        ),
    ):
        assert (refused.status_code, refused.json()["code"]) == (403, "foreign_location")


async def test_devices_of_another_organization_return_404(service: RunningService) -> None:
    device = await service.device().enrolled()
    foreign_device = service.device(service.make_key(organization_id="org-0002"))
    assert (await foreign_device.call(routes.LIST_DEVICES)).json()["devices"] == []
    for refused in (
        await foreign_device.call(routes.DEVICE_DETAIL, instanceId=device.instance_id),
        await foreign_device.call(routes.REVOKE, instanceId=device.instance_id),
        await foreign_device.call(routes.HEARTBEAT, bindingId=device.binding_id, foreground=False),
    ):
        assert refused.status_code == 404


async def test_history_of_locations_without_access_is_left_out(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    await device.create_request()
    await device.submit()
    await device.enroll(locationId="loc-0002")
    device.api_key = service.make_key(locations=["loc-0002"])
    detail = await device.detail()
    assert (detail["requests"], detail["reports"]) == ([], [])


async def test_a_request_past_its_expiry_is_read_as_expired_before_the_sweep_stores_it(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    request = await device.create_request()
    service.clock.advance(service.core.settings.request_ttl_s)
    (record,) = (await device.detail())["requests"]
    assert (record["status"], record["finishedAt"]) == ("expired", record["expiresAt"])
    now = service.clock()
    # `sweep` returns the number of expired requests, and of deleted challenges.
    assert service.database.write(lambda session: sweep(session, now)) == (1, 0)
    assert service.database.write(lambda session: sweep(session, now)) == (0, 0)
    assert await device.status_of(request) == "expired"


async def test_the_sweep_deletes_old_challenges(service: RunningService) -> None:
    await service.device().challenge()
    service.clock.advance(2 * 86400)
    now = service.clock()
    assert service.database.write(lambda session: sweep(session, now)) == (0, 1)


@pytest.mark.parametrize(
    ("prefer", "sizes"),
    [
        (None, [2, 2, 1]),
        ("maxpagesize=3", [3, 2]),
        ('respond-async, OData.MaxPageSize="4"; a=b', [4, 1]),
        ("maxpagesize=999999", [5]),
        ("maxpagesize=0", [2, 2, 1]),
        ("maxpagesize=-1", [2, 2, 1]),
        ("maxpagesize=many", [2, 2, 1]),
        ("xmaxpagesize=4", [2, 2, 1]),
    ],
)
async def test_the_prefer_header_sets_the_page_size(
    service: RunningService, prefer: str | None, sizes: list[int]
) -> None:
    for _ in range(5):
        await service.device().enrolled()
    results: list[int] = []
    body = b"{}"
    headers = {} if prefer is None else {"prefer": prefer}
    while len(results) < 5:
        reply = (await service.post(routes.LIST_DEVICES, body, **headers)).json()
        results.append(len(reply["devices"]))
        if reply["nextCursor"] is None:
            break
        body = json.dumps({"cursor": reply["nextCursor"]}).encode()
    assert results == sizes


@pytest.mark.medium
async def test_a_page_has_at_most_200_entries_even_if_the_prefer_header_requests_more(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    for _ in range(PAGE_MAX + 1):
        await device.submit(None)
    body = json.dumps({"instanceId": device.instance_id}).encode()
    reply = (await service.post(routes.DEVICE_DETAIL, body, prefer="maxpagesize=5000")).json()
    assert len(reply["reports"]) == PAGE_MAX == 200
    assert reply["nextCursor"] is not None
