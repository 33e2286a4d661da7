"""Tests of the task that acknowledges received requests to the service."""

from datetime import timedelta

import pytest

from agent.errors import BodyRejected, BodyTooLarge, Refused, ServiceError, ServiceUnavailable
from agent.rules.clock_skew import ClockSkew
from agent.rules.lifecycle import Event, State
from agent.wire.device_operations import AcknowledgeReply, AcknowledgeRequest
from tests.unit.agent.samples import BINDING, NOW, command
from tests.unit.agent.tasks.agent_parts import AgentParts, running, settle, until


def acknowledgements(bound_agent: AgentParts) -> list[tuple[int, str]]:
    return [
        (sent.request_id.int, sent.status) for sent in bound_agent.client.requests_of("acknowledge")
    ]


async def test_requests_are_acknowledged_in_the_order_of_receipt(bound_agent: AgentParts) -> None:
    for number in (1, 2, 3):
        bound_agent.clock.advance(1)
        bound_agent.add_request(number=number)

    async with running(bound_agent.acknowledger.run):
        await until(lambda: len(bound_agent.journal.in_state(State.ACKNOWLEDGED)) == 3)

    assert acknowledgements(bound_agent) == [(1, "received"), (2, "received"), (3, "received")]
    assert {sent.binding_id for sent in bound_agent.client.requests_of("acknowledge")} == {BINDING}
    assert bound_agent.executor_wakes >= 3


async def test_the_acknowledger_sends_only_after_it_was_woken(bound_agent: AgentParts) -> None:
    async with running(bound_agent.acknowledger.run):
        await settle()
        bound_agent.add_request()
        await settle()
        assert acknowledgements(bound_agent) == []
        bound_agent.acknowledger.wake()
        await until(lambda: bound_agent.entry().state is State.ACKNOWLEDGED)


async def test_acknowledgement_is_retried_after_a_lost_reply(bound_agent: AgentParts) -> None:
    bound_agent.add_request()
    bound_agent.client.script["acknowledge"].extend(
        [ServiceUnavailable("connection-lost", "cut")] * 3
    )

    async with running(bound_agent.acknowledger.run):
        await until(lambda: bound_agent.entry().state is State.ACKNOWLEDGED)

    assert acknowledgements(bound_agent) == [(1, "received")] * 4


@pytest.mark.parametrize(
    "error",
    [Refused(409, None, "too late"), BodyRejected(400, "too late"), BodyTooLarge("too late")],
)
async def test_a_request_whose_acknowledgement_is_refused_is_rejected(
    bound_agent: AgentParts, error: ServiceError
) -> None:
    bound_agent.add_request()
    bound_agent.client.script["acknowledge"].append(error)

    async with running(bound_agent.acknowledger.run, bound_agent.enrollment.run):
        await until(lambda: bound_agent.entry().state is State.REJECTED)
        await settle()

    assert bound_agent.entry().detail == "too late"
    rechecks = 1 + isinstance(error, Refused)  # at the start, and after a refusal
    assert len(bound_agent.client.requests_of("current")) == rechecks
    assert bound_agent.binding_state.is_bound


async def test_an_expired_request_is_not_acknowledged(bound_agent: AgentParts) -> None:
    bound_agent.journal.add(command(1, expires_at=NOW), NOW)
    bound_agent.journal.add(command(2, expires_at=NOW + timedelta(seconds=1)), NOW)

    async with running(bound_agent.acknowledger.run):
        await until(lambda: bound_agent.entry(2).state is State.ACKNOWLEDGED)

    assert bound_agent.entry(1).state is State.EXPIRED
    assert acknowledgements(bound_agent) == [(2, "received")]


async def test_expiry_is_determined_by_the_clock_of_the_service(bound_agent: AgentParts) -> None:
    bound_agent.client.skew = ClockSkew(timedelta(hours=-2))
    bound_agent.journal.add(command(1, expires_at=NOW - timedelta(hours=1)), NOW)

    async with running(bound_agent.acknowledger.run):
        await until(lambda: bound_agent.entry().state is State.ACKNOWLEDGED)


async def test_nothing_is_acknowledged_without_a_binding(bound_agent: AgentParts) -> None:
    bound_agent.add_request()
    bound_agent.binding_state.revoke()

    async with running(bound_agent.acknowledger.run):
        await settle()
        assert acknowledgements(bound_agent) == []
        bound_agent.binding_state.confirm()
        await until(lambda: bound_agent.entry().state is State.ACKNOWLEDGED)


async def test_start_of_a_collection_is_acknowledged(bound_agent: AgentParts) -> None:
    entry = bound_agent.add_request(Event.ACCEPTED, Event.STARTED)

    assert await bound_agent.session.acknowledge(entry, "running") is None

    assert acknowledgements(bound_agent) == [(1, "running")]


async def test_a_request_whose_acknowledgement_fails_is_postponed(bound_agent: AgentParts) -> None:
    for number in (1, 2):
        bound_agent.clock.advance(1)
        bound_agent.add_request(number=number)
    failures_left = [9]

    def answer(request: AcknowledgeRequest) -> object:
        if request.request_id.int == 1 and failures_left[0]:
            failures_left[0] -= 1
            return ServiceUnavailable("server-error", "500")
        return AcknowledgeReply(accepted=True, status=request.status)

    bound_agent.client.always["acknowledge"] = answer

    async def send_heartbeats() -> None:
        """Acknowledgements are postponed only while other calls succeed."""
        while True:
            await bound_agent.heartbeat.send()
            await bound_agent.clock.sleep(0.2)

    async with running(bound_agent.acknowledger.run, send_heartbeats):
        await until(lambda: bound_agent.entry(2).state is State.ACKNOWLEDGED)
        assert bound_agent.entry(1).state is State.RECEIVED
        await until(lambda: bound_agent.entry(1).state is State.ACKNOWLEDGED)
