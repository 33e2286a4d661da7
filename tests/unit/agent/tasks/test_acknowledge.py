"""Tests of the task that acknowledges received requests to the service."""

from datetime import timedelta

import pytest

from agent.errors import BodyRejected, BodyTooLarge, Refused, ServiceError, ServiceUnavailable
from agent.rules.clock_skew import ClockSkew
from agent.rules.lifecycle import Event, State
from agent.wire.device_operations import AcknowledgeReply, AcknowledgeRequest
from tests.unit.agent.samples import BINDING, NOW, command
from tests.unit.agent.tasks.harness import Harness, running, settle, until


def acknowledgements(home: Harness) -> list[tuple[int, str]]:
    return [(sent.request_id.int, sent.status) for sent in home.client.named("acknowledge")]


async def test_requests_are_acknowledged_in_the_order_of_receipt(home: Harness) -> None:
    for number in (1, 2, 3):
        home.clock.advance(1)
        home.requested(number=number)

    async with running(home.acknowledger.run):
        await until(lambda: len(home.journal.in_state(State.ACKNOWLEDGED)) == 3)

    assert acknowledgements(home) == [(1, "received"), (2, "received"), (3, "received")]
    assert {sent.binding_id for sent in home.client.named("acknowledge")} == {BINDING}
    assert home.executor_wakes >= 3


async def test_the_acknowledger_sends_only_after_it_was_woken(home: Harness) -> None:
    async with running(home.acknowledger.run):
        await settle()
        home.requested()
        await settle()
        assert acknowledgements(home) == []
        home.acknowledger.wake()
        await until(lambda: home.entry().state is State.ACKNOWLEDGED)


async def test_acknowledgement_is_retried_after_a_lost_reply(home: Harness) -> None:
    home.requested()
    home.client.script["acknowledge"].extend([ServiceUnavailable("connection-lost", "cut")] * 3)

    async with running(home.acknowledger.run):
        await until(lambda: home.entry().state is State.ACKNOWLEDGED)

    assert acknowledgements(home) == [(1, "received")] * 4


@pytest.mark.parametrize(
    "error",
    [Refused(409, None, "too late"), BodyRejected(400, "too late"), BodyTooLarge("too late")],
)
async def test_a_request_whose_acknowledgement_is_refused_is_rejected(
    home: Harness, error: ServiceError
) -> None:
    home.requested()
    home.client.script["acknowledge"].append(error)

    async with running(home.acknowledger.run, home.enrollment.run):
        await until(lambda: home.entry().state is State.REJECTED)
        await settle()

    assert home.entry().detail == "too late"
    rechecks = 1 + isinstance(error, Refused)  # at the start, and after a refusal
    assert len(home.client.named("current")) == rechecks
    assert home.binding_state.is_bound


async def test_an_expired_request_is_not_acknowledged(home: Harness) -> None:
    home.journal.add(command(1, expires_at=NOW), NOW)
    home.journal.add(command(2, expires_at=NOW + timedelta(seconds=1)), NOW)

    async with running(home.acknowledger.run):
        await until(lambda: home.entry(2).state is State.ACKNOWLEDGED)

    assert home.entry(1).state is State.EXPIRED
    assert acknowledgements(home) == [(2, "received")]


async def test_expiry_is_determined_by_the_clock_of_the_service(home: Harness) -> None:
    home.client.skew = ClockSkew(timedelta(hours=-2))
    home.journal.add(command(1, expires_at=NOW - timedelta(hours=1)), NOW)

    async with running(home.acknowledger.run):
        await until(lambda: home.entry().state is State.ACKNOWLEDGED)


async def test_nothing_is_acknowledged_without_a_binding(home: Harness) -> None:
    home.requested()
    home.binding_state.revoke()

    async with running(home.acknowledger.run):
        await settle()
        assert acknowledgements(home) == []
        home.binding_state.confirm()
        await until(lambda: home.entry().state is State.ACKNOWLEDGED)


async def test_start_of_a_collection_is_acknowledged(home: Harness) -> None:
    entry = home.requested(Event.ACCEPTED, Event.STARTED)

    assert await home.session.acknowledge(entry, "running") is None

    assert acknowledgements(home) == [(1, "running")]


async def test_a_request_whose_acknowledgement_fails_is_postponed(home: Harness) -> None:
    for number in (1, 2):
        home.clock.advance(1)
        home.requested(number=number)
    failures_left = [9]

    def answer(request: AcknowledgeRequest) -> object:
        if request.request_id.int == 1 and failures_left[0]:
            failures_left[0] -= 1
            return ServiceUnavailable("server-error", "500")
        return AcknowledgeReply(accepted=True, status=request.status)

    home.client.always["acknowledge"] = answer

    async def send_heartbeat() -> None:
        while True:
            await home.heartbeat.send()
            await home.clock.sleep(0.2)

    async with running(home.acknowledger.run, send_heartbeat):
        await until(lambda: home.entry(2).state is State.ACKNOWLEDGED)
        assert home.entry(1).state is State.RECEIVED
        await until(lambda: home.entry(1).state is State.ACKNOWLEDGED)
