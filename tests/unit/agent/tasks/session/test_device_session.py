"""Tests that the session calls the service's operations with the binding of this device."""

import asyncio

import pytest

from agent.errors import ServiceUnavailable
from agent.wire.device_operations import HeartbeatReply
from tests.unit.agent.samples import BINDING, OTHER_BINDING, record
from tests.unit.agent.tasks.agent_parts import AgentParts, settle, until


async def test_heartbeat_uses_the_binding_at_the_time_of_sending(bound_agent: AgentParts) -> None:
    """The device gets a new binding during an outage that delays the heartbeat."""
    answer = HeartbeatReply(last_seen_at=bound_agent.clock.now())
    bound_agent.client.always["heartbeat"] = lambda request: (
        answer if request.binding_id == OTHER_BINDING else ServiceUnavailable("timeout", "no reply")
    )
    sending = asyncio.create_task(bound_agent.heartbeat.send())
    await until(lambda: len(bound_agent.client.requests_of("heartbeat")) == 3)

    bound_agent.binding_state.adopt(record(binding_id=OTHER_BINDING), "loc-0001")
    await sending

    binding_ids = [request.binding_id for request in bound_agent.client.requests_of("heartbeat")]
    assert binding_ids[:3] == [BINDING] * 3
    assert binding_ids[-1] == OTHER_BINDING
    assert bound_agent.heartbeat.last_at is not None


async def test_a_heartbeat_without_a_binding_raises_an_error(unbound_agent: AgentParts) -> None:
    with pytest.raises(RuntimeError, match="needs a binding"):
        await unbound_agent.session.heartbeat()

    assert unbound_agent.client.calls == []


async def test_recheck_binding_returns_when_the_recheck_has_ended(bound_agent: AgentParts) -> None:
    rechecks = [asyncio.create_task(bound_agent.session.recheck_binding()) for _ in range(2)]
    await bound_agent.session.wait_for_recheck_request()
    await settle()
    assert not any(task.done() for task in rechecks)

    # The enrollment task calls this function again when the recheck has ended.
    next_wait = asyncio.create_task(bound_agent.session.wait_for_recheck_request())

    await asyncio.gather(*rechecks)
    assert not next_wait.done()
    bound_agent.session.request_recheck()
    await next_wait
