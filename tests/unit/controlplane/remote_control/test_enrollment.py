"""Tests of enrolment, of the operation `current`, and of heartbeats."""

import asyncio
import uuid

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agent.wire import routes
from agent.wire.codec import decode
from agent.wire.device_operations import EnrollmentRecord
from controlplane.accounts.keys import key_store
from tests.unit.controlplane.running_service import RunningService


async def test_an_enrollment_stores_the_values_of_the_device(service: RunningService) -> None:
    device = service.device()
    response = await device.enroll(appVersion="9.9", capabilities=["network"])
    record = decode(response.content, EnrollmentRecord)
    assert str(record.instance_id) == device.instance_id
    assert (record.location_id, record.legacy_install_id) == ("loc-0001", "till-01")
    assert (record.app_version, record.capabilities) == ("9.9", ("network",))
    assert (await device.call(routes.CURRENT)).json() == response.json()


async def test_an_app_version_may_be_left_out(service: RunningService) -> None:
    device = service.device()
    challenge = await device.call(
        routes.CHALLENGE,
        instanceId=device.instance_id,
        publicKey=device.public_key,
        platform="linux",
        locationId="loc-0001",
        legacyInstallId="till-01",
        capabilities=[],
    )
    assert (await device.answer(challenge)).json()["appVersion"] is None


async def test_current_is_null_before_enrolment(service: RunningService) -> None:
    response = await service.device().call(routes.CURRENT)
    assert (response.status_code, response.json()) == (200, None)


async def test_a_repeated_answer_to_a_challenge_gets_the_same_reply(
    service: RunningService,
) -> None:
    device = service.device()
    challenge = await device.challenge()
    first = await device.answer(challenge)
    service.clock.advance(3600)
    again = await device.answer(challenge)
    assert first.content == again.content
    assert len((await device.call(routes.LIST_DEVICES)).json()["devices"]) == 1


async def test_concurrent_answers_to_one_challenge_create_one_binding(
    service: RunningService,
) -> None:
    device = service.device()
    challenge = await device.challenge()
    replies = await asyncio.gather(*(device.answer(challenge) for _ in range(4)))
    assert {reply.status_code for reply in replies} == {200}
    assert len({reply.content for reply in replies}) == 1


async def test_concurrent_answers_to_several_challenges_create_one_binding(
    service: RunningService,
) -> None:
    device = service.device()
    challenges = [await device.challenge() for _ in range(4)]
    replies = await asyncio.gather(*(device.answer(challenge) for challenge in challenges))
    assert {reply.status_code for reply in replies} == {200}
    assert len({reply.json()["bindingId"] for reply in replies}) == 1


async def test_a_used_challenge_refuses_a_different_signature(service: RunningService) -> None:
    device = service.device()
    challenge = await device.challenge()
    await device.answer(challenge)
    response = await device.call(
        routes.ENROLL, challengeId=challenge.json()["challengeId"], signature="00" * 64
    )
    assert (response.status_code, response.json()["code"]) == (409, "challenge_used")


async def test_a_challenge_expires(service: RunningService) -> None:
    device = service.device()
    challenge = await device.challenge()
    service.clock.advance(service.core.settings.challenge_ttl_s)
    response = await device.answer(challenge)
    assert (response.status_code, response.json()["code"]) == (409, "challenge_expired")


async def test_a_wrong_signature_enrols_no_device_and_does_not_use_the_challenge(
    service: RunningService,
) -> None:
    device = service.device()
    challenge = await device.challenge()
    response = await device.call(
        routes.ENROLL,
        challengeId=challenge.json()["challengeId"],
        signature=device.sign("another nonce"),
    )
    assert (response.status_code, response.json()["code"]) == (400, "invalid_signature")
    assert "signature" in response.json()["errors"]
    assert (await device.answer(challenge)).status_code == 200


async def test_a_challenge_belongs_to_the_key_that_requested_it(service: RunningService) -> None:
    device = service.device()
    challenge = await device.challenge()
    device.api_key = service.make_key()
    response = await device.answer(challenge)
    assert (response.status_code, response.json()["code"]) == (404, "challenge_not_found")


async def test_the_refusal_of_a_key_that_is_not_ed25519_names_the_field(
    service: RunningService,
) -> None:
    response = await service.device().challenge(publicKey="0" * 88)
    assert response.status_code == 400
    assert list(response.json()["errors"]) == ["publicKey"]


async def test_a_device_that_enrolls_again_keeps_its_binding(service: RunningService) -> None:
    device = await service.device().enrolled()
    again = await device.enroll(appVersion="2.0")
    assert again.json()["bindingId"] == device.binding_id
    assert again.json()["appVersion"] == "2.0"


async def test_another_device_key_is_refused_until_the_device_is_revoked(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    request = await device.create_request()
    device.private_key = Ed25519PrivateKey.generate()
    refused = await device.enroll()
    assert (refused.status_code, refused.json()["code"]) == (409, "device_key_mismatch")
    assert (await device.heartbeat()).status_code == 200
    await device.call(routes.REVOKE, instanceId=device.instance_id)
    again = await device.enroll()
    assert again.json()["bindingId"] != device.binding_id
    assert await device.status_of(request) == "expired"
    old = await device.heartbeat()
    assert (old.status_code, old.json()["code"]) == (409, "binding_revoked")


async def test_enrolling_at_another_location_creates_a_new_binding(service: RunningService) -> None:
    device = await service.device().enrolled()
    moved = await device.enroll(locationId="loc-0002")
    assert moved.json()["bindingId"] != device.binding_id
    assert moved.json()["locationId"] == "loc-0002"


async def test_a_revoked_device_can_enroll_again(service: RunningService) -> None:
    device = await service.device().enrolled()
    await device.call(routes.REVOKE, instanceId=device.instance_id)
    again = await device.enroll()
    assert again.json()["bindingId"] != device.binding_id
    assert (await device.detail())["device"]["revokedAt"] is None


async def test_a_caller_without_access_to_a_device_cannot_replace_its_key(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    device.api_key = service.make_key(locations=["loc-0002"])
    moved = await device.enroll(locationId="loc-0002")
    assert moved.status_code == 200
    device.api_key = service.make_key(locations=["loc-0001"])
    device.private_key = Ed25519PrivateKey.generate()
    refused = await device.enroll()
    assert (refused.status_code, refused.json()["code"]) == (403, "foreign_location")


async def test_a_device_of_another_organization_is_hidden_and_does_not_prevent_enrolment(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    foreign_device = service.device(service.make_key(organization_id="org-0002"))
    foreign_device.instance_id = device.instance_id
    for path in (routes.CREATE_REQUEST, routes.REVOKE, routes.DEVICE_DETAIL):
        answer = await foreign_device.call(path, instanceId=device.instance_id, **kind_for(path))
        assert (answer.status_code, answer.json()["code"]) == (404, "device_not_found")
    # Two devices of different organizations can have the same id.
    await foreign_device.enrolled()
    assert foreign_device.binding_id != device.binding_id
    assert (await device.enroll()).json()["bindingId"] == device.binding_id
    request_id = await foreign_device.create_request()
    assert request_id not in [command["requestId"] for command in await device.commands()]
    assert request_id not in [request["id"] for request in (await device.detail())["requests"]]


def kind_for(path: str) -> dict[str, str]:
    return {"kind": "network"} if path == routes.CREATE_REQUEST else {}


async def test_current_returns_the_newest_binding_of_the_key(service: RunningService) -> None:
    first = await service.device().enrolled()
    service.clock.advance(1)
    second = await service.device().enrolled()
    assert (await first.call(routes.CURRENT)).json()["bindingId"] == second.binding_id
    await second.call(routes.REVOKE, instanceId=second.instance_id)
    assert (await first.call(routes.CURRENT)).json()["bindingId"] == first.binding_id


async def test_current_of_a_revoked_device_is_null(service: RunningService) -> None:
    device = await service.device().enrolled()
    await device.call(routes.REVOKE, instanceId=device.instance_id)
    assert (await device.call(routes.CURRENT)).json() is None


async def test_heartbeats_make_a_device_online(service: RunningService) -> None:
    device = await service.device().enrolled()
    window_s = service.core.settings.online_window_s
    service.clock.advance(window_s)
    assert (await device.detail())["device"]["online"] is True
    service.clock.advance(1)
    assert (await device.detail())["device"]["online"] is False
    heartbeat_reply = await device.heartbeat(foreground=True)
    assert heartbeat_reply.json() == {
        "lastSeenAt": service.clock().isoformat().replace("+00:00", "Z")
    }
    record = (await device.detail())["device"]
    assert (record["online"], record["foreground"]) == (True, True)


async def test_a_heartbeat_of_an_unknown_binding_returns_404(service: RunningService) -> None:
    device = service.device()
    device.binding_id = str(uuid.uuid4())
    response = await device.heartbeat()
    assert (response.status_code, response.json()["code"]) == (404, "binding_not_found")


async def test_commands_for_an_offline_device_are_delivered_to_its_new_api_key(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    service.clock.advance(service.core.settings.online_window_s + 1)
    await device.create_request()
    old_key, device.api_key = device.api_key, service.make_key()
    assert await device.commands() == []
    await device.heartbeat()
    assert len(await device.commands()) == 1
    device.api_key = old_key
    assert await device.commands() == []


async def test_a_device_whose_api_key_was_revoked_moves_to_a_new_key_at_once(
    service: RunningService,
) -> None:
    device = await service.device(service.make_key()).enrolled()
    await device.create_request()
    revoke(service, device.api_key)
    device.api_key = service.make_key()
    await device.heartbeat()
    assert len(await device.commands()) == 1


async def test_an_online_device_cannot_be_taken_over_by_another_api_key(
    service: RunningService,
) -> None:
    device = await service.device().enrolled()
    await device.create_request()
    last_seen_at = (await device.heartbeat()).json()["lastSeenAt"]
    service.clock.advance(60)
    owner_key, device.api_key = device.api_key, service.make_key()
    reply = await device.heartbeat()
    assert (reply.status_code, reply.json()["lastSeenAt"]) == (200, last_seen_at)
    assert await device.commands() == []
    device.api_key = owner_key
    assert len(await device.commands()) == 1
    # If no heartbeat comes with the earlier key during the online window, the device moves to the
    # new key.
    service.clock.advance(service.core.settings.online_window_s)
    device.api_key = service.make_key()
    await device.heartbeat()
    assert len(await device.commands()) == 1


async def test_concurrent_heartbeats_are_each_answered(service: RunningService) -> None:
    """One transaction handles the heartbeats of several devices.

    Two devices are active, and one of them sends two heartbeats. The heartbeats of a revoked, an
    unknown and a foreign device are refused.
    """
    active, repeating, revoked, unknown, foreign = [
        await service.device().enrolled() for _ in range(5)
    ]
    await service.device().call(routes.REVOKE, instanceId=revoked.instance_id)
    unknown.binding_id = str(uuid.uuid4())
    foreign.api_key = service.make_key(organization_id="org-0002")
    service.clock.advance(60)
    senders = (active, repeating, repeating, revoked, unknown, foreign)
    answers = await asyncio.gather(*(sender.heartbeat(foreground=True) for sender in senders))
    assert [answer.status_code for answer in answers] == [200, 200, 200, 409, 404, 404]
    assert answers[3].json()["code"] == "binding_revoked"
    for device in (active, repeating):
        record = (await device.detail())["device"]
        assert record["foreground"]
        assert record["lastSeenAt"] == answers[0].json()["lastSeenAt"]


@pytest.mark.parametrize("field", ["instanceId", "publicKey", "platform", "locationId"])
async def test_the_refusal_of_a_missing_field_names_the_field(
    service: RunningService, field: str
) -> None:
    response = await service.device().challenge(**{field: None})
    assert response.status_code == 400
    assert list(response.json()["errors"]) == [field]


async def test_names_with_control_characters_are_refused(service: RunningService) -> None:
    response = await service.device().challenge(
        locationId="loc\x00", legacyInstallId="a\x1b[2J", appVersion="1\n2", capabilities=["\x7f"]
    )
    assert response.status_code == 400
    assert set(response.json()["errors"]) == {
        "locationId", "legacyInstallId", "appVersion", "capabilities.0",
    }  # fmt: skip


def revoke(service: RunningService, api_key: str) -> None:
    key_id, now = service.caller(api_key).key_id, service.clock()
    service.database.write(lambda session: key_store.revoke_key(session, key_id, now))
