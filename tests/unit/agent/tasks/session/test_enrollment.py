"""Tests of enrollment, and of checking the binding again."""

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
from tests.unit.agent.tasks.harness import Harness, harness, running, settle, until

NO = Refused(403, None, "no (status 403)")
GONE = Refused(404, None, "unknown (status 404)")


def operations(home: Harness) -> list[str]:
    return [name for name, _ in home.client.calls]


async def simulate_restart(home: Harness) -> None:
    """Simulate a restart: the binding is stored, but not yet confirmed by the service."""
    home.binding_state._is_bound.clear()


async def test_an_unbound_device_enrolls_and_is_bound(stranger: Harness) -> None:
    async with running(stranger.enrollment.run):
        bound = await stranger.binding_state.wait_until_bound()

    assert operations(stranger) == ["challenge", "enroll"]
    challenge = stranger.client.named("challenge")[0]
    key = stranger.identity.load_or_create()
    assert challenge.instance_id == key.instance_id == bound.instance_id
    assert challenge.public_key == key.public_key
    assert challenge.location_id == "loc-0001"
    assert challenge.legacy_install_id == "install-1"
    saved = stranger.record_file.load()
    assert saved is not None
    assert saved.binding is not None
    assert saved.binding.record == bound


async def test_an_enrollment_sends_the_signature_of_the_nonce(stranger: Harness) -> None:
    await enroll_with_challenge(
        stranger.enrollment.config,
        key := stranger.identity.load_or_create(),
        "install-1",
        stranger.client,
    )

    assert stranger.client.named("enroll")[0].signature == key.sign("nonce", "utf8", "hex")


async def test_enrollment_continues_after_an_outage(stranger: Harness) -> None:
    down = ServiceUnavailable("timeout", "silence")
    stranger.client.script["challenge"].extend([down] * 3)
    stranger.client.script["enroll"].extend([down] * 2)

    async with running(stranger.enrollment.run):
        await stranger.binding_state.wait_until_bound()

    assert operations(stranger) == ["challenge"] * 4 + ["enroll"] * 3
    assert len({c.signature for c in stranger.client.named("enroll")}) == 1
    assert stranger.codes() == set()


@pytest.mark.parametrize(
    ("error", "words"),
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
    stranger: Harness, error: ServiceError, words: str
) -> None:
    stranger.client.always["challenge"] = error
    stranger.clock.limit_s = 4000

    async with running(stranger.enrollment.run):
        await stranger.clock.is_at_limit.wait()

    (problem,) = stranger.health.problems()
    assert problem.code == "not-enrolled"
    assert problem.detail == words == explain(error)
    assert 5 <= len(stranger.client.named("challenge")) <= 20
    assert not stranger.binding_state.is_bound


async def test_a_changed_key_is_tried_at_once(stranger: Harness) -> None:
    stranger.client.always["challenge"] = NO
    async with running(stranger.enrollment.run):
        await until(lambda: len(stranger.client.named("challenge")) >= 8)
        await settle(10)  # the call was answered, and the task waits
        del stranger.client.always["challenge"]
        changed_at = stranger.clock.elapsed_s
        stranger.key_file.write_text("key-2")
        await stranger.binding_state.wait_until_bound()

    assert stranger.clock.elapsed_s - changed_at <= 10
    assert stranger.codes() == set()


async def test_an_expired_challenge_is_replaced_by_a_new_one(stranger: Harness) -> None:
    stranger.client.script["enroll"].append(Refused(410, None, "the challenge ran out"))

    async with running(stranger.enrollment.run):
        await stranger.binding_state.wait_until_bound()

    assert operations(stranger) == ["challenge", "enroll"] * 2


async def test_nonce_in_the_wrong_encoding_sets_a_condition(tmp_path: Path) -> None:
    with harness(tmp_path, bound=False) as home:
        home.enrollment.config = config(enrollment={"nonce_encoding": "hex"})
        home.client.script["challenge"].extend(
            [ChallengeReply(challenge_id=UUID(int=1), nonce="no hex")] * 3
        )
        async with running(home.enrollment.run):
            await until(lambda: "not-enrolled" in home.codes())

        assert "the nonce is not hex" in home.health.problems()[0].detail


async def test_an_enrollment_reply_for_another_device_is_rejected(stranger: Harness) -> None:
    stranger.client.script["enroll"].append(record(instance_id=UUID(int=99)))

    async with running(stranger.enrollment.run):
        await until(lambda: "not-enrolled" in stranger.codes())
        assert "a different device" in stranger.health.problems()[0].detail
        bound = await stranger.binding_state.wait_until_bound()

    assert bound.instance_id == stranger.identity.load_or_create().instance_id


# --------------------------------------------------------------- with a binding, at start


async def test_a_stored_binding_is_confirmed_without_an_enrollment(home: Harness) -> None:
    await simulate_restart(home)
    async with running(home.enrollment.run):
        await home.binding_state.wait_until_bound()
        await settle()

    assert operations(home) == ["current"]
    assert home.binding_state.binding_id == BINDING


async def simulate_upgrade(home: Harness) -> None:
    """Simulate an upgrade: the stored enrollment contains the agent's previous version."""
    older = record().model_copy(update={"app_version": "0.0.9"})
    home.binding_state.adopt(older, "loc-0001")
    await simulate_restart(home)


async def test_upgraded_agent_enrolls_with_its_version(home: Harness) -> None:
    """Only an enrollment sends the agent's version. The service displays it, for example during a
    rollout.
    """
    await simulate_upgrade(home)
    async with running(home.enrollment.run):
        await home.binding_state.wait_until_bound()
        await settle()

    assert operations(home) == ["challenge", "enroll"]
    assert home.client.named("challenge")[0].app_version == __version__
    assert home.binding_state.binding_id == BINDING


async def test_refused_upgrade_enrollment_keeps_the_binding(home: Harness) -> None:
    home.client.always["challenge"] = NO
    await simulate_upgrade(home)
    async with running(home.enrollment.run):
        await home.binding_state.wait_until_bound()
        await settle()

    assert operations(home) == ["challenge", "current"]
    assert home.codes() == set()


async def test_version_is_not_sent_again_to_a_service_that_ignores_it(home: Harness) -> None:
    await simulate_upgrade(home)
    home.binding_state.adopt(record().model_copy(update={"app_version": None}), "loc-0001")
    await simulate_restart(home)
    async with running(home.enrollment.run):
        await home.binding_state.wait_until_bound()
        await settle()

    assert operations(home) == ["current"]


async def test_a_new_binding_of_this_device_is_adopted(home: Harness) -> None:
    await simulate_restart(home)
    assert home.client.record is not None
    home.client.record = home.client.record.model_copy(update={"binding_id": OTHER_BINDING})

    async with running(home.enrollment.run):
        await home.binding_state.wait_until_bound()

    assert home.binding_state.binding_id == OTHER_BINDING
    saved = home.record_file.load()
    assert saved is not None
    assert saved.binding is not None
    assert saved.binding.record.binding_id == OTHER_BINDING


async def test_a_binding_that_cannot_be_stored_is_not_used(
    stranger: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_to_save(_record: DeviceRecord) -> None:
        raise StateError("no space left on device")

    monkeypatch.setattr(stranger.record_file, "save", fail_to_save)
    with pytest.raises(StateError):
        stranger.binding_state.adopt(record(), "loc-0001")

    assert not stranger.binding_state.is_bound
    assert stranger.binding_state.binding is None


async def test_the_heartbeat_decides_about_the_binding_if_devices_share_a_key(
    home: Harness,
) -> None:
    await simulate_restart(home)
    home.client.record = record(instance_id=UUID(int=99))

    async with running(home.enrollment.run):
        await home.binding_state.wait_until_bound()
        assert home.codes() == set(), "another device of a shared key must not be a problem"
        await home.session.recheck_binding()
        assert home.binding_state.is_bound, "the recheck must not end the binding"
        assert home.codes() == set()
        home.client.always["heartbeat"] = NO
        home.session.request_recheck()
        await until(lambda: home.binding_state.is_revoked)
        assert home.codes() == {"revoked"}
        del home.client.always["heartbeat"]
        await home.binding_state.wait_until_bound()

    assert home.codes() == set()
    assert home.binding_state.binding_id == BINDING
    assert home.enrollment.current_of_others >= 4


@pytest.mark.parametrize(("length", "codes"), [(1024, set()), (2000, {"identity-too-long"})])
async def test_an_organization_id_longer_than_the_report_limit_sets_a_condition(
    stranger: Harness, length: int, codes: set[str]
) -> None:
    def with_a_long_id(request: EnrollRequest) -> EnrollmentRecord:
        assert stranger.client.record is not None
        return stranger.client.record.model_copy(update={"organization_id": "x" * length})

    stranger.client.always["enroll"] = with_a_long_id
    async with running(stranger.enrollment.run):
        await stranger.binding_state.wait_until_bound()
        await settle()

    assert stranger.codes() == codes


async def test_an_unknown_binding_is_treated_as_revoked(home: Harness) -> None:
    await simulate_restart(home)
    home.client.always["current"] = None
    home.clock.limit_s = 3600

    async with running(home.enrollment.run):
        await home.clock.is_at_limit.wait()

    assert home.codes() == {"revoked"}
    assert not home.binding_state.is_bound
    saved = home.record_file.load()
    assert saved is not None
    assert saved.is_revoked
    assert saved.binding is not None, "the binding must be kept"
    assert set(operations(home)) == {"current"}, "with on_revoked = stop the agent must not enroll"
    assert len(operations(home)) <= 12, "the binding must be rechecked slowly"


@pytest.mark.parametrize("error", [NO, GONE, BodyRejected(400, "no such operation")])
async def test_a_refused_current_call_at_start_keeps_the_binding(
    home: Harness, error: ServiceError
) -> None:
    await simulate_restart(home)
    home.client.always["current"] = error

    async with running(home.enrollment.run):
        await home.binding_state.wait_until_bound()

    assert home.codes() == set()


# --------------------------------------------------------------- after a refusal


@pytest.mark.parametrize("error", [NO, GONE, BodyRejected(400, "no such operation")])
async def test_refused_current_and_heartbeat_calls_in_a_recheck_are_a_revocation(
    home: Harness, error: ServiceError
) -> None:
    home.client.always.update(current=error, heartbeat=NO)
    async with running(home.enrollment.run):
        await settle()
        home.session.request_recheck()
        await until(lambda: home.binding_state.is_revoked)
        assert "refused" in home.health.problems()[0].detail
        home.client.always.clear()
        await home.binding_state.wait_until_bound()

    assert home.codes() == set()


async def test_a_recheck_with_an_unchanged_binding_changes_nothing(home: Harness) -> None:
    async with running(home.enrollment.run):
        await settle()
        await home.session.recheck_binding()
        await home.session.recheck_binding()

    assert operations(home) == ["current"] * 3
    assert home.binding_state.is_bound
    assert home.clock.slept == []


async def test_a_recheck_requested_during_a_current_call_calls_current_again(home: Harness) -> None:
    """If a recheck is requested during a `current` call, the result of that call may be outdated.
    Therefore the agent calls `current` again.
    """
    async with running(home.enrollment.run):
        await settle()
        home.session.request_recheck()
        await until(lambda: operations(home) == ["current"] * 2)  # the call is in progress
        home.client.script["current"].extend([home.client.record, None])
        await home.session.recheck_binding()

        assert operations(home) == ["current"] * 3
        assert home.binding_state.is_revoked


async def test_a_recheck_requested_while_the_device_is_revoked_does_not_bind_it(
    home: Harness,
) -> None:
    home.client.always["current"] = None
    async with running(home.enrollment.run):
        await until(lambda: home.binding_state.is_revoked)
        home.clock.limit_s = home.clock.elapsed_s
        await settle()
        home.session.request_recheck()
        await settle()

    assert not home.binding_state.is_bound


async def test_a_revoked_device_polls_slowly_until_it_is_bound_again(home: Harness) -> None:
    home.client.script["current"].extend([None] * 5)

    async with running(home.enrollment.run):
        await until(lambda: home.binding_state.is_revoked)
        await home.binding_state.wait_until_bound()

    assert len(home.client.named("current")) == 6
    for wait, most in zip(home.clock.slept, (60, 120, 240, 480, 960), strict=True):
        assert most / 2 <= wait <= most
    assert retry.REVOKED.cap_s == 1800
    assert home.codes() == set()


async def test_a_device_that_was_revoked_before_the_start_stays_revoked(home: Harness) -> None:
    home.binding_state.revoke()
    home.client.record = record(instance_id=UUID(int=99))
    home.client.always["heartbeat"] = NO

    async with running(home.enrollment.run):
        await until(lambda: len(home.client.named("current")) >= 3)

    assert home.binding_state.is_revoked
    assert "revoked" in home.codes()


async def test_a_revoked_device_enrolls_again_if_on_revoked_is_reenroll(tmp_path: Path) -> None:
    with harness(tmp_path, on_revoked="reenroll") as home:
        before = home.identity.load_or_create().instance_id
        home.client.always["current"] = None
        async with running(home.enrollment.run):
            await until(lambda: home.binding_state.is_revoked)
            await home.binding_state.wait_until_bound()

        assert home.identity.load_or_create().instance_id == before
        assert home.client.named("enroll")
        assert home.clock.slept[0] >= 30, "the retry must wait"
        assert not home.binding_state.is_revoked
        assert home.codes() == set()


async def test_sign_up_raises_the_error_of_its_client(stranger: Harness) -> None:
    stranger.client.script["challenge"].append(CredentialRefused("unknown key"))

    with pytest.raises(CredentialRefused):
        await enroll_with_challenge(
            stranger.enrollment.config,
            stranger.identity.load_or_create(),
            "install-1",
            stranger.client,
        )


async def test_sign_up_on_the_command_line_does_not_retry(stranger: Harness) -> None:
    stranger.client.script["challenge"].append(ServiceUnavailable("timeout", "silence"))
    key = stranger.identity.load_or_create()

    async def ask() -> EnrollmentRecord:
        return await enroll_with_challenge(
            stranger.enrollment.config, key, "install-1", stranger.client
        )

    with pytest.raises(ServiceUnavailable):
        await ask()

    assert (await ask()).instance_id == key.instance_id
    assert operations(stranger) == ["challenge", "challenge", "enroll"]
