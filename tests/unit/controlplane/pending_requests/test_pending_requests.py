"""Tests of pending requests: the service turns each into a request once its device is online."""

import json
from datetime import timedelta
from typing import Any

import pytest

from agent.wire import routes
from controlplane.accounts.keys import key_store
from controlplane.settings import Settings
from controlplane.web.background import poll_changes
from tests.unit.controlplane.accounts.people import Browser, make_user
from tests.unit.controlplane.running_service import RunningService, service_on
from tests.unit.controlplane.simulated_device import SimulatedDevice


async def create_pending(
    service: RunningService, kind: str = "network", days: float = 3, **selection: Any
) -> dict[str, Any]:
    response = await call(
        service, "pending-requests", kind=kind, until=until(service, days), **selection
    )
    assert response.status_code == 200, response.text
    results: dict[str, Any] = response.json()
    return results


async def call(service: RunningService, path: str, key: str | None = None, **body: Any) -> Any:
    headers = {"Authorization": f"Bearer {key or service.write_key}"}
    return await service.http.post(f"/console/api/{path}", json=body, headers=headers)


def until(service: RunningService, days: float) -> str:
    return (service.clock() + timedelta(days=days)).isoformat()


async def overview_row(service: RunningService, device: SimulatedDevice) -> dict[str, Any]:
    rows = (await call(service, "overview")).json()["devices"]
    return next(row for row in rows if row["device"]["instanceId"] == device.instance_id)


async def requests_of(device: SimulatedDevice) -> list[dict[str, Any]]:
    return list((await device.detail())["requests"])


async def offline_device(service: RunningService) -> SimulatedDevice:
    device = await service.device().enrolled()
    service.clock.advance(3600)
    return device


async def test_a_pending_request_creates_one_request_when_the_device_is_online(
    service: RunningService,
) -> None:
    device = await offline_device(service)
    reply = await create_pending(service, instanceIds=[device.instance_id])
    assert (reply["created"], reply["existing"], reply["refused"]) == (1, 0, 0)
    await poll_changes(service.core)
    assert await requests_of(device) == []
    (pending,) = (await overview_row(service, device))["pendingRequests"]
    assert (pending["kind"], pending["id"], pending["requestedBy"]) == (
        "network",
        reply["pendingRequests"][0],
        "test",
    )
    service.clock.advance(86400)
    await device.heartbeat()
    for _ in range(3):
        await poll_changes(service.core)
    (request,) = await requests_of(device)
    assert (request["kind"], request["status"]) == ("network", "queued")
    assert (await overview_row(service, device))["pendingRequests"] == []
    (command,) = await device.commands()
    assert (await device.submit(requestId=command["requestId"])).status_code == 200
    service.clock.advance(60)
    await device.heartbeat()
    await poll_changes(service.core)
    assert len((await device.detail())["reports"]) == 1


async def test_a_request_that_the_device_never_received_is_dispatched_again(
    service: RunningService,
) -> None:
    device = await offline_device(service)
    await create_pending(service, instanceIds=[device.instance_id])
    for number in range(1, 4):  # each request expires before the device receives it
        await device.heartbeat()
        await poll_changes(service.core)
        assert len(await requests_of(device)) == number
        service.clock.advance(service.core.settings.request_ttl_s + 1)
        await poll_changes(service.core)
    await device.heartbeat()
    await poll_changes(service.core)
    (command,) = await device.commands()
    await device.acknowledge(command["requestId"], "received")
    service.clock.advance(service.core.settings.request_ttl_s + 1)
    await poll_changes(service.core)
    # The device has received the request and answers late: no further request is created.
    await device.heartbeat()
    await poll_changes(service.core)
    assert (await device.submit(requestId=command["requestId"])).status_code == 200
    await poll_changes(service.core)
    assert len(await requests_of(device)) == 4
    assert len((await device.detail())["reports"]) == 1


async def test_the_report_of_an_open_request_completes_a_pending_request_of_the_same_kind(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    request_id = await device.create_request("network")
    await create_pending(service, instanceIds=[device.instance_id])
    await poll_changes(service.core)
    service.clock.advance(1)
    await device.submit(requestId=request_id)
    await poll_changes(service.core)
    assert [request["id"] for request in await requests_of(device)] == [request_id]
    assert (await overview_row(service, device))["pendingRequests"] == []


async def test_a_pending_request_expires_on_its_date(service: RunningService) -> None:
    device = await offline_device(service)
    await create_pending(service, instanceIds=[device.instance_id], days=1)
    service.clock.advance(86401)
    await device.heartbeat()
    await poll_changes(service.core)
    assert await requests_of(device) == []
    assert (await overview_row(service, device))["pendingRequests"] == []


async def test_a_pending_request_can_be_cancelled(service: RunningService) -> None:
    device = await offline_device(service)
    reply = await create_pending(service, instanceIds=[device.instance_id])
    (pending_id,) = reply["pendingRequests"]
    for _ in range(2):
        cancelled = await call(service, "pending-requests/cancel", pendingRequestId=pending_id)
        assert cancelled.json() == {"cancelled": True, "state": "cancelled"}
    await device.heartbeat()
    await poll_changes(service.core)
    assert await requests_of(device) == []


async def test_revoking_the_device_or_the_key_ends_a_pending_request(
    service: RunningService,
) -> None:
    device, other = await offline_device(service), await offline_device(service)
    key = service.make_key()
    await create_pending(service, instanceIds=[device.instance_id])
    body = {"kind": "network", "until": until(service, 3), "instanceIds": [other.instance_id]}
    assert (await call(service, "pending-requests", key, **body)).status_code == 200
    await device.call(routes.REVOKE, instanceId=device.instance_id)
    service.database.write(
        lambda session: key_store.revoke_key(session, service.caller(key).key_id, service.clock())
    )
    await other.heartbeat()
    await poll_changes(service.core)
    assert await requests_of(device) == []
    assert await requests_of(other) == []
    assert (await overview_row(service, other))["pendingRequests"] == []


async def test_repeating_a_pending_request_only_extends_it(
    service: RunningService,
) -> None:
    await offline_device(service)
    other_device = await service.device(location_id="loc-0002").enrolled()
    service.clock.advance(3600)
    assert (await create_pending(service, location="loc-0002"))["created"] == 1
    reply = await create_pending(service, all=True, days=5)
    assert (reply["created"], reply["existing"]) == (1, 1)
    (pending,) = (await overview_row(service, other_device))["pendingRequests"]
    assert pending["until"].startswith(reply["until"][:19])  # up to the seconds


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"days": -1, "all": True}, 400, "validation_error"),
        ({"days": 93, "all": True}, 400, "validation_error"),
        ({}, 400, "validation_error"),
        ({"all": True, "location": "loc-0001"}, 400, "validation_error"),
        ({"instanceIds": ["00000000-0000-4000-8000-000000000000"]}, 404, "device_not_found"),
    ],
)
async def test_invalid_pending_requests_are_refused(
    service: RunningService, body: dict[str, Any], status: int, code: str
) -> None:
    days = body.pop("days", 1)
    response = await call(
        service, "pending-requests", kind="network", until=until(service, days), **body
    )
    assert (response.status_code, response.json()["code"]) == (status, code)


async def test_creating_and_cancelling_need_a_key_with_write_grant_for_the_location(
    service: RunningService,
) -> None:
    device = await offline_device(service)
    reply = await create_pending(service, instanceIds=[device.instance_id])
    body = {"kind": "network", "until": until(service, 1), "instanceIds": [device.instance_id]}
    reader = service.make_key(can_write=False)
    other_location = service.make_key(locations=["loc-0002"])
    other_organization = service.make_key(organization_id="org-0002")
    for key, status in ((reader, 403), (other_location, 403), (other_organization, 404)):
        assert (await call(service, "pending-requests", key, **body)).status_code == status
        cancelled = await call(
            service, "pending-requests/cancel", key, pendingRequestId=reply["pendingRequests"][0]
        )
        assert cancelled.status_code == status
    location_body = {"kind": "network", "until": until(service, 1), "location": "loc-0001"}
    assert (
        await call(service, "pending-requests", other_location, **location_body)
    ).status_code == 403
    assert (await call(service, "pending-requests", other_organization, **location_body)).json()[
        "created"
    ] == 0


async def test_a_revoked_device_with_a_pending_request_is_counted_only_as_refused(
    service: RunningService,
) -> None:
    device = await offline_device(service)
    await create_pending(service, instanceIds=[device.instance_id])
    body = json.dumps({"instanceId": device.instance_id})
    revoked = await service.post(routes.REVOKE, body)
    assert revoked.status_code == 200
    reply = await create_pending(service, days=5, instanceIds=[device.instance_id])
    assert (reply["created"], reply["existing"], reply["refused"]) == (0, 0, 1)


class TestLimits:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(rate_per_s=0, pending_requests_max=2, open_requests_max=1)

    async def test_too_many_devices_are_refused_even_if_few_of_them_support_the_kind(
        self, service: RunningService
    ) -> None:
        for kind in ("application", "application", "network", "network"):
            assert (await service.device().enroll(capabilities=[kind])).status_code == 200
        body = {"kind": "network", "until": until(service, 1), "location": "loc-0001"}
        reply = await call(service, "pending-requests", **body)
        assert reply.json()["code"] == "too_many_pending_requests"

    async def test_the_numbers_of_pending_and_open_requests_are_limited(
        self, service: RunningService
    ) -> None:
        devices = [await offline_device(service) for _ in range(3)]
        ids = [device.instance_id for device in devices]
        body = {"kind": "network", "until": until(service, 1), "instanceIds": ids}
        assert (await call(service, "pending-requests", **body)).json()[
            "code"
        ] == "too_many_pending_requests"
        await create_pending(service, instanceIds=ids[:1])
        await create_pending(service, kind="application", instanceIds=ids[:1])
        await devices[0].heartbeat()
        await poll_changes(service.core)
        # A device has at most one open request, so the other pending request waits.
        (first,) = await requests_of(devices[0])
        await devices[0].submit(requestId=first["id"], kind=first["kind"])
        await poll_changes(service.core)
        assert len(await requests_of(devices[0])) == 2


async def test_two_services_create_one_request_for_a_pending_request(
    service: RunningService,
) -> None:
    device = await offline_device(service)
    await create_pending(service, instanceIds=[device.instance_id])
    await device.heartbeat()
    async with service_on(service.database, service.core.settings, service.clock) as other:
        for running in (service, other, service):
            await poll_changes(running.core)
    assert len(await requests_of(device)) == 1


async def test_a_pending_request_of_a_signed_in_user_shows_the_name_of_the_user(
    service: RunningService,
) -> None:
    device = await offline_device(service)
    make_user(service)
    browser = Browser(service)
    await browser.sign_in()
    body = {"kind": "network", "until": until(service, 3), "instanceIds": [device.instance_id]}
    assert (await browser.post("/console/api/pending-requests", body)).status_code == 200
    (pending,) = (await overview_row(service, device))["pendingRequests"]
    assert pending["requestedBy"] == "Ada"
