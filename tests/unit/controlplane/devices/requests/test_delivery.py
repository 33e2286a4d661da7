"""Tests of requests: their delivery to devices as commands, and their acknowledgement."""

import asyncio
import uuid

import pytest
from sqlalchemy.orm import Session

from agent.wire import routes
from agent.wire.codec import validate
from agent.wire.device_operations import Command
from controlplane.devices.requests import requests
from controlplane.storage.tables import ApiKey
from tests.unit.controlplane.running_service import RunningService


async def test_a_request_is_delivered_until_it_runs(service: RunningService) -> None:
    device = await service.device().enrolled()
    request = await device.create_request("application")
    (first,) = await device.commands()
    command = validate(first, Command)
    assert (str(command.request_id), command.kind, command.status) == (
        request,
        "application",
        "queued",
    )
    await device.acknowledge(request, "received")
    assert [entry["status"] for entry in await device.commands()] == ["received"]
    await device.acknowledge(request, "running")
    assert await device.commands() == []


async def test_commands_are_delivered_oldest_first(service: RunningService) -> None:
    device = await service.device().enrolled()
    requests = [await device.create_request() for _ in range(3)]
    assert [entry["requestId"] for entry in await device.commands()] == requests


async def test_a_key_receives_only_the_commands_of_its_devices(
    service: RunningService,
) -> None:
    first, second = await service.device().enrolled(), await service.device().enrolled()
    other = await service.device(service.make_key()).enrolled()
    expected = {await first.create_request(), await second.create_request()}
    await other.create_request()
    assert {entry["requestId"] for entry in await first.commands()} == expected


@pytest.mark.parametrize("other_keys", [0, 1])
async def test_commands_that_a_key_cannot_access_do_not_use_up_its_limit(
    service: RunningService, monkeypatch: pytest.MonkeyPatch, other_keys: int
) -> None:
    monkeypatch.setattr(requests, "COMMANDS_MAX", 2)
    hidden, visible = [
        await service.device(location_id=location_id).enrolled()
        for location_id in ("loc-0001", "loc-0002")
    ]
    for _ in range(2 * (1 + other_keys)):
        await hidden.create_request()
    request = await visible.create_request()
    key_ids = [service.caller(key).key_id for key in (
        service.write_key, *(service.make_key() for _ in range(other_keys))
    )]  # fmt: skip

    def commands_of_restricted_key(session: Session) -> list[Command]:
        session.get_one(ApiKey, key_ids[0]).locations = ["loc-0002"]
        session.flush()
        return requests.waiting_by_key(session, key_ids, service.clock())[key_ids[0]]

    commands = service.database.write(commands_of_restricted_key)
    assert [str(each.request_id) for each in commands] == [request]


async def test_acknowledgements_change_the_status_of_the_request(service: RunningService) -> None:
    device = await service.device().enrolled()
    request = await device.create_request()
    service.clock.advance(2)
    reply = await device.acknowledge(request, "received")
    assert reply.json() == {"accepted": True, "status": "received"}
    service.clock.advance(3)
    assert (await device.acknowledge(request, "running")).json()["status"] == "running"
    (record,) = (await device.detail())["requests"]
    assert record["status"] == "running"
    assert record["receivedAt"].startswith("2026-11-20T12:00:02")
    assert record["startedAt"].startswith("2026-11-20T12:00:05")
    assert record["finishedAt"] is None


async def test_running_can_be_the_first_acknowledgement(service: RunningService) -> None:
    device = await service.device().enrolled()
    request = await device.create_request()
    await device.acknowledge(request, "running")
    (record,) = (await device.detail())["requests"]
    assert record["receivedAt"] == record["startedAt"] is not None


@pytest.mark.parametrize("status", ["received", "running"])
async def test_an_acknowledgement_may_be_repeated(service: RunningService, status: str) -> None:
    device = await service.device().enrolled()
    request = await device.create_request()
    first = await device.acknowledge(request, status)
    before = await device.detail()
    service.clock.advance(5)
    again = await device.acknowledge(request, status)
    assert first.content == again.content
    assert (await device.detail())["requests"] == before["requests"]


async def test_a_late_acknowledgement_does_not_change_a_running_request(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    request = await device.create_request()
    await device.acknowledge(request, "running")
    late = await device.acknowledge(request, "received")
    assert late.json() == {"accepted": True, "status": "received"}
    assert await device.status_of(request) == "running"


async def test_concurrent_acknowledgements_all_succeed(service: RunningService) -> None:
    device = await service.device().enrolled()
    request = await device.create_request()
    replies = await asyncio.gather(
        *(device.acknowledge(request, status) for status in ("received", "running") * 3)
    )
    assert {reply.status_code for reply in replies} == {200}
    assert await device.status_of(request) == "running"


async def test_an_expired_request_is_neither_delivered_nor_acknowledged(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    request = await device.create_request()
    service.clock.advance(service.core.settings.request_ttl_s)
    assert await device.commands() == []
    refused = await device.acknowledge(request, "received")
    assert (refused.status_code, refused.json()["code"]) == (409, "request_expired")
    assert await device.status_of(request) == "expired"


async def test_a_finished_request_is_not_acknowledged(service: RunningService) -> None:
    device = await service.device().enrolled()
    request = await device.create_request()
    await device.submit(requestId=request)
    refused = await device.acknowledge(request, "running")
    assert (refused.status_code, refused.json()["code"]) == (409, "request_finished")


async def test_requests_of_other_devices_and_unknown_requests_are_not_found(
    service: RunningService,
) -> None:
    device, other = await service.device().enrolled(), await service.device().enrolled()
    refused = await device.acknowledge(await other.create_request(), "received")
    assert (refused.status_code, refused.json()["code"]) == (404, "request_not_found")
    refused = await device.acknowledge(str(uuid.uuid4()), "received")
    assert refused.status_code == 404


async def test_a_revoked_device_gets_no_requests_and_cannot_acknowledge_any(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    request = await device.create_request()
    await device.call(routes.REVOKE, instanceId=device.instance_id)
    assert await device.commands() == []
    refused = await device.acknowledge(request, "received")
    assert (refused.status_code, refused.json()["code"]) == (409, "binding_revoked")
    assert await device.status_of(request) == "expired"
