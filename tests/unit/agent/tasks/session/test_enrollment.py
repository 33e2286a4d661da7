"""Tests of enrollment, and of rechecks of the binding."""

from pathlib import Path
from uuid import UUID

import pytest

from agent import __version__
from agent.adapters.storage.device_record import DeviceRecord
from agent.errors import (
    BodyRejected,
    CredentialRefused,
    Refused,
    ServiceError,
    ServiceUnavailable,
    StateError,
)
from agent.rules import retry
from agent.tasks.session.enrollment import enroll_with_challenge, explain
from agent.wire.device_operations import ChallengeReply, EnrollmentRecord, EnrollRequest
from tests.unit.agent.samples import BINDING, OTHER_BINDING, config, record
from tests.unit.agent.tasks.agent_parts import AgentParts, agent_parts, running, settle, until

FORBIDDEN = Refused(403, None, "no (status 403)")
NOT_FOUND = Refused(404, None, "unknown (status 404)")


def operations(bound_agent: AgentParts) -> list[str]:
    return [name for name, _ in bound_agent.client.calls]


async def simulate_restart(bound_agent: AgentParts) -> None:
    """Simulate a restart: the binding is stored, but not yet confirmed by the service."""
    bound_agent.binding_state._is_bound.clear()


async def test_an_unbound_device_enrolls_and_is_bound(unbound_agent: AgentParts) -> None:
    async with running(unbound_agent.enrollment.run):
        await unbound_agent.binding_state.wait_until_bound()

    bound = unbound_agent.binding_state.binding
    assert bound is not None
    assert operations(unbound_agent) == ["challenge", "enroll"]
    challenge = unbound_agent.client.requests_of("challenge")[0]
    key = unbound_agent.identity.load_or_create()
    assert challenge.instance_id == key.instance_id == bound.instance_id
    assert challenge.public_key == key.public_key
    assert challenge.location_id == "loc-0001"
    assert challenge.legacy_install_id == "install-1"
    saved = unbound_agent.record_file.load()
    assert saved is not None
    assert saved.binding is not None
    assert saved.binding.record == bound


async def test_an_enrollment_sends_the_signature_of_the_nonce(unbound_agent: AgentParts) -> None:
    await enroll_with_challenge(
        unbound_agent.enrollment.config,
        key := unbound_agent.identity.load_or_create(),
        "install-1",
        unbound_agent.client,
    )

    assert unbound_agent.client.requests_of("enroll")[0].signature == key.sign(
        "nonce", "utf8", "hex"
    )


async def test_enrollment_continues_after_an_outage(unbound_agent: AgentParts) -> None:
    down = ServiceUnavailable("timeout", "no reply")
    unbound_agent.client.script["challenge"].extend([down] * 3)
    unbound_agent.client.script["enroll"].extend([down] * 2)

    async with running(unbound_agent.enrollment.run):
        await unbound_agent.binding_state.wait_until_bound()

    assert operations(unbound_agent) == ["challenge"] * 4 + ["enroll"] * 3
    assert len({c.signature for c in unbound_agent.client.requests_of("enroll")}) == 1
    assert unbound_agent.condition_codes() == set()


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (
            Refused(403, "read_only_key", "read-only (status 403)"),
            "this key has no write grant: read-only (status 403)",
        ),
        (
            Refused(403, None, "no (status 403)"),
            "this key has no write grant, or no access to this location: no (status 403)",
        ),
        (Refused(403, "foreign_location", "not yours"), "not yours"),
        (Refused(409, None, "busy"), "busy"),
        (BodyRejected(400, "locationId: unknown"), "locationId: unknown"),
    ],
)
async def test_refused_enrollment_sets_a_condition_and_waits(
    unbound_agent: AgentParts, error: ServiceError, detail: str
) -> None:
    unbound_agent.client.always["challenge"] = error
    unbound_agent.clock.limit_s = 4000

    async with running(unbound_agent.enrollment.run):
        await unbound_agent.clock.is_at_limit.wait()

    (problem,) = unbound_agent.health.problems()
    assert problem.code == "not-enrolled"
    assert problem.detail == detail == explain(error)
    assert 5 <= len(unbound_agent.client.requests_of("challenge")) <= 20
    assert not unbound_agent.binding_state.is_bound


async def test_a_changed_key_is_tried_at_once(unbound_agent: AgentParts) -> None:
    unbound_agent.client.always["challenge"] = FORBIDDEN
    async with running(unbound_agent.enrollment.run):
        await until(lambda: len(unbound_agent.client.requests_of("challenge")) >= 8)
        await settle(10)  # the call was answered, and the task waits
        del unbound_agent.client.always["challenge"]
        changed_at = unbound_agent.clock.elapsed_s
        unbound_agent.key_file.write_text("key-2")
        await unbound_agent.binding_state.wait_until_bound()

    assert unbound_agent.clock.elapsed_s - changed_at <= 10
    assert unbound_agent.condition_codes() == set()


async def test_an_expired_challenge_is_replaced_by_a_new_challenge(
    unbound_agent: AgentParts,
) -> None:
    unbound_agent.client.script["enroll"].append(Refused(410, None, "the challenge ran out"))

    async with running(unbound_agent.enrollment.run):
        await unbound_agent.binding_state.wait_until_bound()

    assert operations(unbound_agent) == ["challenge", "enroll"] * 2


async def test_nonce_in_the_wrong_encoding_sets_a_condition(tmp_path: Path) -> None:
    with agent_parts(tmp_path, has_binding=False) as unbound_agent:
        unbound_agent.enrollment.config = config(enrollment={"nonce_encoding": "hex"})
        unbound_agent.client.script["challenge"].extend(
            [ChallengeReply(challenge_id=UUID(int=1), nonce="no hex")] * 3
        )
        async with running(unbound_agent.enrollment.run):
            await until(lambda: "not-enrolled" in unbound_agent.condition_codes())

        assert "the nonce is not hex" in unbound_agent.health.problems()[0].detail


async def test_an_enrollment_reply_for_another_device_is_rejected(
    unbound_agent: AgentParts,
) -> None:
    unbound_agent.client.script["enroll"].append(record(instance_id=UUID(int=99)))

    async with running(unbound_agent.enrollment.run):
        await until(lambda: "not-enrolled" in unbound_agent.condition_codes())
        assert "a different device" in unbound_agent.health.problems()[0].detail
        await unbound_agent.binding_state.wait_until_bound()

    bound = unbound_agent.binding_state.binding
    assert bound is not None
    assert bound.instance_id == unbound_agent.identity.load_or_create().instance_id


# --------------------------------------------------------------- with a binding, at start


async def test_a_stored_binding_is_confirmed_without_an_enrollment(bound_agent: AgentParts) -> None:
    await simulate_restart(bound_agent)
    async with running(bound_agent.enrollment.run):
        await bound_agent.binding_state.wait_until_bound()
        await settle()

    assert operations(bound_agent) == ["current"]
    assert bound_agent.binding_state.binding_id == BINDING


async def simulate_upgrade(bound_agent: AgentParts) -> None:
    """Simulate an upgrade: the stored enrollment contains the agent's previous version."""
    older = record().model_copy(update={"app_version": "0.0.9"})
    bound_agent.binding_state.adopt(older, "loc-0001")
    await simulate_restart(bound_agent)


async def test_upgraded_agent_enrolls_with_its_version(bound_agent: AgentParts) -> None:
    """Only an enrollment sends the agent's version. The service displays it, for example during a
    rollout.
    """
    await simulate_upgrade(bound_agent)
    async with running(bound_agent.enrollment.run):
        await bound_agent.binding_state.wait_until_bound()
        await settle()

    assert operations(bound_agent) == ["challenge", "enroll"]
    assert bound_agent.client.requests_of("challenge")[0].app_version == __version__
    assert bound_agent.binding_state.binding_id == BINDING


async def test_refused_upgrade_enrollment_keeps_the_binding(bound_agent: AgentParts) -> None:
    bound_agent.client.always["challenge"] = FORBIDDEN
    await simulate_upgrade(bound_agent)
    async with running(bound_agent.enrollment.run):
        await bound_agent.binding_state.wait_until_bound()
        await settle()

    assert operations(bound_agent) == ["challenge", "current"]
    assert bound_agent.condition_codes() == set()


async def test_version_is_not_sent_again_to_a_service_that_ignores_it(
    bound_agent: AgentParts,
) -> None:
    await simulate_upgrade(bound_agent)
    bound_agent.binding_state.adopt(record().model_copy(update={"app_version": None}), "loc-0001")
    await simulate_restart(bound_agent)
    async with running(bound_agent.enrollment.run):
        await bound_agent.binding_state.wait_until_bound()
        await settle()

    assert operations(bound_agent) == ["current"]


async def test_a_new_binding_of_this_device_is_adopted(bound_agent: AgentParts) -> None:
    await simulate_restart(bound_agent)
    assert bound_agent.client.record is not None
    bound_agent.client.record = bound_agent.client.record.model_copy(
        update={"binding_id": OTHER_BINDING}
    )

    async with running(bound_agent.enrollment.run):
        await bound_agent.binding_state.wait_until_bound()

    assert bound_agent.binding_state.binding_id == OTHER_BINDING
    saved = bound_agent.record_file.load()
    assert saved is not None
    assert saved.binding is not None
    assert saved.binding.record.binding_id == OTHER_BINDING


async def test_a_binding_that_cannot_be_stored_is_not_used(
    unbound_agent: AgentParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_to_save(_record: DeviceRecord) -> None:
        raise StateError("no space left on device")

    monkeypatch.setattr(unbound_agent.record_file, "save", fail_to_save)
    with pytest.raises(StateError):
        unbound_agent.binding_state.adopt(record(), "loc-0001")

    assert not unbound_agent.binding_state.is_bound
    assert unbound_agent.binding_state.binding is None


async def test_the_heartbeat_decides_about_the_binding_if_devices_share_a_key(
    bound_agent: AgentParts,
) -> None:
    await simulate_restart(bound_agent)
    bound_agent.client.record = record(instance_id=UUID(int=99))

    async with running(bound_agent.enrollment.run):
        await bound_agent.binding_state.wait_until_bound()
        assert bound_agent.condition_codes() == set(), (
            "a reply about another device with the same API key must not set a condition"
        )
        await bound_agent.session.recheck_binding()
        assert bound_agent.binding_state.is_bound, "the recheck must not end the binding"
        assert bound_agent.condition_codes() == set()
        bound_agent.client.always["heartbeat"] = FORBIDDEN
        bound_agent.session.request_recheck()
        await until(lambda: bound_agent.binding_state.is_revoked)
        assert bound_agent.condition_codes() == {"revoked"}
        del bound_agent.client.always["heartbeat"]
        await bound_agent.binding_state.wait_until_bound()

    assert bound_agent.condition_codes() == set()
    assert bound_agent.binding_state.binding_id == BINDING
    assert bound_agent.enrollment.current_of_others >= 4


@pytest.mark.parametrize(("length", "codes"), [(1024, set()), (2000, {"identity-too-long"})])
async def test_an_organization_id_longer_than_the_report_limit_sets_a_condition(
    unbound_agent: AgentParts, length: int, codes: set[str]
) -> None:
    def enroll_with_long_id(request: EnrollRequest) -> EnrollmentRecord:
        assert unbound_agent.client.record is not None
        return unbound_agent.client.record.model_copy(update={"organization_id": "x" * length})

    unbound_agent.client.always["enroll"] = enroll_with_long_id
    async with running(unbound_agent.enrollment.run):
        await unbound_agent.binding_state.wait_until_bound()
        await settle()

    assert unbound_agent.condition_codes() == codes


async def test_an_unknown_binding_is_treated_as_revoked(bound_agent: AgentParts) -> None:
    await simulate_restart(bound_agent)
    bound_agent.client.always["current"] = None
    bound_agent.clock.limit_s = 3600

    async with running(bound_agent.enrollment.run):
        await bound_agent.clock.is_at_limit.wait()

    assert bound_agent.condition_codes() == {"revoked"}
    assert not bound_agent.binding_state.is_bound
    saved = bound_agent.record_file.load()
    assert saved is not None
    assert saved.is_revoked
    assert saved.binding is not None, "the binding must be kept"
    assert set(operations(bound_agent)) == {"current"}, (
        "with on_revoked = stop the agent must not enroll"
    )
    assert len(operations(bound_agent)) <= 12, "the binding must be rechecked slowly"


@pytest.mark.parametrize("error", [FORBIDDEN, NOT_FOUND, BodyRejected(400, "no such operation")])
async def test_a_refused_current_call_at_start_keeps_the_binding(
    bound_agent: AgentParts, error: ServiceError
) -> None:
    await simulate_restart(bound_agent)
    bound_agent.client.always["current"] = error

    async with running(bound_agent.enrollment.run):
        await bound_agent.binding_state.wait_until_bound()

    assert bound_agent.condition_codes() == set()


# --------------------------------------------------------------- after a refusal


@pytest.mark.parametrize("error", [FORBIDDEN, NOT_FOUND, BodyRejected(400, "no such operation")])
async def test_refused_current_and_heartbeat_calls_in_a_recheck_are_a_revocation(
    bound_agent: AgentParts, error: ServiceError
) -> None:
    bound_agent.client.always.update(current=error, heartbeat=FORBIDDEN)
    async with running(bound_agent.enrollment.run):
        await settle()
        bound_agent.session.request_recheck()
        await until(lambda: bound_agent.binding_state.is_revoked)
        assert "refused" in bound_agent.health.problems()[0].detail
        bound_agent.client.always.clear()
        await bound_agent.binding_state.wait_until_bound()

    assert bound_agent.condition_codes() == set()


async def test_a_recheck_with_an_unchanged_binding_changes_nothing(bound_agent: AgentParts) -> None:
    async with running(bound_agent.enrollment.run):
        await settle()
        await bound_agent.session.recheck_binding()
        await bound_agent.session.recheck_binding()

    assert operations(bound_agent) == ["current"] * 3
    assert bound_agent.binding_state.is_bound
    assert bound_agent.clock.slept == []


async def test_a_recheck_requested_during_a_current_call_calls_current_again(
    bound_agent: AgentParts,
) -> None:
    """If a recheck is requested during a `current` call, the result of that call may be outdated.
    Therefore the agent calls `current` again.
    """
    async with running(bound_agent.enrollment.run):
        await settle()
        bound_agent.session.request_recheck()
        await until(lambda: operations(bound_agent) == ["current"] * 2)  # the call is in progress
        bound_agent.client.script["current"].extend([bound_agent.client.record, None])
        await bound_agent.session.recheck_binding()

        assert operations(bound_agent) == ["current"] * 3
        assert bound_agent.binding_state.is_revoked


async def test_a_recheck_requested_while_the_device_is_revoked_does_not_bind_it(
    bound_agent: AgentParts,
) -> None:
    bound_agent.client.always["current"] = None
    async with running(bound_agent.enrollment.run):
        await until(lambda: bound_agent.binding_state.is_revoked)
        bound_agent.clock.limit_s = bound_agent.clock.elapsed_s
        await settle()
        bound_agent.session.request_recheck()
        await settle()

    assert not bound_agent.binding_state.is_bound


async def test_a_revoked_device_polls_slowly_until_it_is_bound_again(
    bound_agent: AgentParts,
) -> None:
    bound_agent.client.script["current"].extend([None] * 5)

    async with running(bound_agent.enrollment.run):
        await until(lambda: bound_agent.binding_state.is_revoked)
        await bound_agent.binding_state.wait_until_bound()

    assert len(bound_agent.client.requests_of("current")) == 6
    for wait, most in zip(bound_agent.clock.slept, (60, 120, 240, 480, 960), strict=True):
        assert most / 2 <= wait <= most
    assert retry.REVOKED.cap_s == 1800
    assert bound_agent.condition_codes() == set()


async def test_a_device_that_was_revoked_before_the_start_stays_revoked(
    bound_agent: AgentParts,
) -> None:
    bound_agent.binding_state.revoke()
    bound_agent.client.record = record(instance_id=UUID(int=99))
    bound_agent.client.always["heartbeat"] = FORBIDDEN

    async with running(bound_agent.enrollment.run):
        await until(lambda: len(bound_agent.client.requests_of("current")) >= 3)

    assert bound_agent.binding_state.is_revoked
    assert "revoked" in bound_agent.condition_codes()


async def test_a_revoked_device_enrolls_again_if_on_revoked_is_reenroll(tmp_path: Path) -> None:
    with agent_parts(tmp_path, on_revoked="reenroll") as bound_agent:
        before = bound_agent.identity.load_or_create().instance_id
        bound_agent.client.always["current"] = None
        async with running(bound_agent.enrollment.run):
            await until(lambda: bound_agent.binding_state.is_revoked)
            await bound_agent.binding_state.wait_until_bound()

        assert bound_agent.identity.load_or_create().instance_id == before
        assert bound_agent.client.requests_of("enroll")
        assert bound_agent.clock.slept[0] >= 30, "the retry must wait"
        assert not bound_agent.binding_state.is_revoked
        assert bound_agent.condition_codes() == set()


async def test_enroll_with_challenge_raises_the_error_of_its_client(
    unbound_agent: AgentParts,
) -> None:
    unbound_agent.client.script["challenge"].append(CredentialRefused("unknown key"))

    with pytest.raises(CredentialRefused):
        await enroll_with_challenge(
            unbound_agent.enrollment.config,
            unbound_agent.identity.load_or_create(),
            "install-1",
            unbound_agent.client,
        )


async def test_enrollment_without_a_session_does_not_retry(unbound_agent: AgentParts) -> None:
    unbound_agent.client.script["challenge"].append(ServiceUnavailable("timeout", "no reply"))
    key = unbound_agent.identity.load_or_create()

    async def enroll() -> EnrollmentRecord:
        return await enroll_with_challenge(
            unbound_agent.enrollment.config, key, "install-1", unbound_agent.client
        )

    with pytest.raises(ServiceUnavailable):
        await enroll()

    assert (await enroll()).instance_id == key.instance_id
    assert operations(unbound_agent) == ["challenge", "challenge", "enroll"]
