"""Tests of limits on calls, processor time and streams, which protect callers from each other."""

import uuid
from contextlib import ExitStack

import pytest

from agent.wire import routes
from controlplane.operation.body_reader import LARGE_BYTES
from controlplane.operation.caller import Caller
from controlplane.operation.errors import Refusal
from controlplane.operation.fairness import Fairness, spread
from controlplane.settings import Settings
from tests.unit.controlplane.running_service import RunningService
from tests.unit.controlplane.web.test_rate_limit import FakeMonotonicClock


def caller(organization_id: str = "org-0001") -> Caller:
    return Caller(uuid.uuid4(), organization_id, can_write=True)


def test_an_organization_has_its_own_limit() -> None:
    settings = Settings(rate_per_s=1, burst=3, organization_rate_per_s=1, organization_burst=5)
    fairness = Fairness(settings, FakeMonotonicClock())
    for _ in range(5):
        fairness.admit(caller())
    with pytest.raises(Refusal) as refused:
        fairness.admit(caller())
    assert (refused.value.status, refused.value.code) == (429, "rate_limited")
    fairness.admit(caller("org-0002"))


def test_refused_calls_do_not_count_for_the_limit_of_the_organization() -> None:
    settings = Settings(rate_per_s=1, burst=1, organization_rate_per_s=1, organization_burst=2)
    fairness, first_caller = Fairness(settings, FakeMonotonicClock()), caller()
    fairness.admit(first_caller)
    for _ in range(10):
        with pytest.raises(Refusal):
            fairness.admit(first_caller)
    fairness.admit(caller())


def test_a_caller_that_used_too_much_processor_time_has_to_wait() -> None:
    settings = Settings(rate_per_s=0, processing_share=0.1, processing_burst_s=1)
    clock = FakeMonotonicClock()
    fairness, first_caller = Fairness(settings, clock), caller()
    fairness.charge(first_caller, 0.9)
    fairness.admit(first_caller)
    fairness.charge(first_caller, 0.3)
    with pytest.raises(Refusal) as refused:
        fairness.admit(first_caller)
    # The wait is (0.9 + 0.3 - 1) / 0.1 = 2 s, spread up to twice that time.
    assert 2 <= int(refused.value.headers["Retry-After"]) <= 4
    fairness.admit(caller())
    clock.now_s += 2
    fairness.admit(first_caller)


def test_keys_of_an_organization_share_a_limit_of_processor_time() -> None:
    settings = Settings(
        call_share=0.1, call_burst_s=1, organization_call_share=0.5, organization_call_burst_s=2
    )
    clock = FakeMonotonicClock()
    fairness = Fairness(settings, clock)
    keys = [caller() for _ in range(3)]
    for key in keys:
        # Only the limit for large bodies ignores the first ``free_s`` seconds of a call.
        fairness.charge(key, 0.9, free_s=1)
    with pytest.raises(Refusal) as refused:
        fairness.admit(keys[0])
    # The wait is (3 * 0.9 - 2) / 0.5 = 1.4 s, rounded up and spread up to twice that time.
    assert 2 <= int(refused.value.headers["Retry-After"]) <= 4
    # Read-only keys of the organization, and other organizations, have limits of their own.
    fairness.admit(Caller(uuid.uuid4(), "org-0001", can_write=False))
    fairness.admit(caller("org-0002"))
    clock.now_s += 2
    fairness.admit(keys[0])


def test_a_rate_of_zero_means_no_limit_of_processor_time_for_calls() -> None:
    fairness, busy = Fairness(Settings(rate_per_s=0), FakeMonotonicClock()), caller()
    # ``free_s`` keeps this call below the limit for large bodies.
    fairness.charge(busy, 1000, free_s=1000)
    fairness.admit(busy)


def test_the_number_of_concurrent_calls_of_a_key_is_limited() -> None:
    fairness, first_caller = (
        Fairness(Settings(rate_per_s=0, calls_at_once=2), FakeMonotonicClock()),
        caller(),
    )
    with fairness.call(first_caller), fairness.call(first_caller):
        with pytest.raises(Refusal):
            fairness.admit(first_caller)
        fairness.admit(caller())
    fairness.admit(first_caller)


def test_refused_concurrent_calls_do_not_use_up_the_limit_of_the_organization() -> None:
    settings = Settings(calls_at_once=1, organization_rate_per_s=1, organization_burst=2)
    fairness, first_caller = Fairness(settings, FakeMonotonicClock()), caller()
    fairness.admit(first_caller)
    with fairness.call(first_caller):
        for _ in range(10):
            with pytest.raises(Refusal):
                fairness.admit(first_caller)
    fairness.admit(caller())


def test_the_streams_of_a_key_an_organization_and_the_service_are_limited() -> None:
    settings = Settings(key_streams_max=2, organization_streams_max=3, streams_max=4)
    fairness, first_caller = Fairness(settings, FakeMonotonicClock()), caller()
    with ExitStack() as open_streams:
        enter = open_streams.enter_context
        for _ in range(2):
            enter(fairness.stream(first_caller))
        with pytest.raises(Refusal) as refused:
            enter(fairness.stream(first_caller))
        assert 30 <= int(refused.value.headers["Retry-After"]) <= 60
        enter(fairness.stream(caller()))
        with pytest.raises(Refusal):
            enter(fairness.stream(caller()))
        enter(fairness.stream(caller("org-0002")))
        with pytest.raises(Refusal):
            enter(fairness.stream(caller("org-0003")))
    with ExitStack() as reopened_streams:
        for _ in range(2):
            reopened_streams.enter_context(fairness.stream(first_caller))


def test_command_and_console_streams_of_a_key_have_separate_limits() -> None:
    fairness, key = (
        Fairness(Settings(key_streams_max=1, key_consoles_max=1), FakeMonotonicClock()),
        caller(),
    )
    with fairness.stream(key), fairness.stream(key, "console"):
        for kind in ("commands", "console"):
            with pytest.raises(Refusal):
                fairness.stream(key, kind).__enter__()
    with fairness.stream(key, "console"):
        pass


def test_refused_callers_get_different_waits() -> None:
    assert len({spread(30) for _ in range(200)}) > 20
    assert {spread(30) for _ in range(200)} <= set(range(30, 61))


class TestLargeBodies:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(
            rate_per_s=0, processing_share=1e-6, processing_burst_s=1e-6, refusal_delay_s=0
        )

    async def test_only_large_bodies_count_against_the_limit_for_large_bodies(
        self, service: RunningService
    ) -> None:
        for _ in range(5):
            small = await service.post(routes.LIST_DEVICES)
            assert small.status_code == 200
        large = b'{"padding":"' + b"x" * LARGE_BYTES + b'"}'
        assert (await service.post(routes.SUBMIT_RESULT, large)).status_code == 400
        assert (await service.post(routes.LIST_DEVICES)).status_code == 429
        other = await service.post(routes.LIST_DEVICES, api_key=service.make_key())
        assert other.status_code == 200
