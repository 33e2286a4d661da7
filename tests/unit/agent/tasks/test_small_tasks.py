"""Tests of the heartbeat, the binding state and the health board."""

import asyncio
import logging
from datetime import timedelta
from uuid import UUID

import pytest

from agent.errors import (
    BodyRejected,
    BodyTooLarge,
    Refused,
    ServiceError,
    ServiceUnavailable,
    StateError,
)
from agent.rules.clock_skew import ClockSkew
from tests.unit.agent.samples import BINDING, OTHER_BINDING, record
from tests.unit.agent.tasks.agent_parts import AgentParts, running, settle, until


async def test_a_heartbeat_is_sent_for_the_binding(bound_agent: AgentParts) -> None:
    await bound_agent.heartbeat.send()

    (heartbeat,) = bound_agent.client.requests_of("heartbeat")
    assert (heartbeat.binding_id, heartbeat.foreground) == (BINDING, False)
    assert bound_agent.heartbeat.last_at == bound_agent.clock.now()


async def test_no_heartbeat_is_sent_without_a_confirmed_binding(bound_agent: AgentParts) -> None:
    bound_agent.binding_state.revoke()

    await bound_agent.heartbeat.send()

    assert bound_agent.client.calls == []
    assert bound_agent.heartbeat.last_at is None


async def test_outage_delays_the_heartbeat(bound_agent: AgentParts) -> None:
    bound_agent.client.script["heartbeat"].extend([ServiceUnavailable("timeout", "no reply")] * 3)

    await bound_agent.heartbeat.send()

    assert len(bound_agent.client.requests_of("heartbeat")) == 4
    assert bound_agent.heartbeat.last_at is not None


async def test_refused_heartbeat_rechecks_the_binding(bound_agent: AgentParts) -> None:
    bound_agent.client.always["heartbeat"] = Refused(404, None, "unknown binding")
    async with running(bound_agent.enrollment.run):
        await settle()
        bound_agent.client.always["current"] = None
        await bound_agent.heartbeat.send()
        await until(lambda: bound_agent.binding_state.is_revoked)

    assert "revoked" in bound_agent.condition_codes()


@pytest.mark.parametrize("error", [BodyRejected(400, "no"), BodyTooLarge("no")])
async def test_rejected_heartbeat_sets_a_condition(
    bound_agent: AgentParts, error: ServiceError
) -> None:
    bound_agent.client.script["heartbeat"].append(error)

    await bound_agent.heartbeat.send()

    assert bound_agent.condition_codes() == {"heartbeat-rejected"}
    assert bound_agent.binding_state.is_bound
    await bound_agent.heartbeat.send()
    assert bound_agent.condition_codes() == set()


@pytest.mark.parametrize(
    ("minutes", "detail"),
    [
        (0, None),
        (1.9, None),
        (2, "2 minutes behind the service"),
        (-90, "90 minutes ahead of the service"),
    ],
)
async def test_wrong_clock_sets_a_condition(
    bound_agent: AgentParts, minutes: float, detail: str | None
) -> None:
    bound_agent.client.skew = ClockSkew(timedelta(minutes=minutes))

    await bound_agent.heartbeat.send()

    assert [p.detail for p in bound_agent.health.problems()] == ([detail] if detail else [])
    bound_agent.client.skew = ClockSkew()
    await bound_agent.heartbeat.send()
    assert bound_agent.condition_codes() == set()


# --------------------------------------------------------------- binding state


async def test_a_lost_binding_wakes_all_waiting_tasks(bound_agent: AgentParts) -> None:
    waiting = [asyncio.create_task(bound_agent.binding_state.wait_for_loss()) for _ in range(2)]
    await settle()
    assert not any(task.done() for task in waiting)

    bound_agent.binding_state.adopt(record(binding_id=OTHER_BINDING), "loc-0001")

    await asyncio.gather(*waiting)
    assert bound_agent.binding_state.is_bound
    assert bound_agent.binding_state.binding_id == OTHER_BINDING


async def test_a_revocation_is_stored_and_can_be_undone(bound_agent: AgentParts) -> None:
    bound_agent.binding_state.revoke()
    bound_agent.binding_state.revoke()
    saved = bound_agent.record_file.load()
    assert saved is not None
    assert saved.is_revoked
    assert not bound_agent.binding_state.is_bound

    bound_agent.binding_state.confirm()

    saved = bound_agent.record_file.load()
    assert saved is not None
    assert not saved.is_revoked
    await bound_agent.binding_state.wait_until_bound()
    assert bound_agent.binding_state.binding_id == BINDING


async def test_a_binding_that_cannot_be_saved_is_not_used(unbound_agent: AgentParts) -> None:
    (unbound_agent.state.path / "device.json").mkdir()

    with pytest.raises(StateError):
        unbound_agent.binding_state.adopt(record(), "loc-0001")

    assert unbound_agent.binding_state.binding is None
    assert unbound_agent.binding_state.binding_id is None
    assert not unbound_agent.binding_state.is_bound


async def test_a_device_without_a_binding_waits_until_a_binding_is_stored(
    unbound_agent: AgentParts,
) -> None:
    with pytest.raises(RuntimeError):
        unbound_agent.binding_state.confirm()
    waiting = asyncio.create_task(unbound_agent.binding_state.wait_until_bound())
    await asyncio.sleep(0)
    assert not waiting.done()

    unbound_agent.binding_state.adopt(record(instance_id=UUID(int=3)), "loc-0001")

    await waiting
    bound = unbound_agent.binding_state.binding
    assert bound is not None
    assert bound.instance_id == UUID(int=3)


# --------------------------------------------------------------- health board


async def test_each_change_of_a_condition_is_logged_once_and_keeps_its_first_timestamp(
    bound_agent: AgentParts, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "agent.tasks.health_board")
    bound_agent.health.set("timeout", "no answer")
    since = bound_agent.health.problems()[0].since
    bound_agent.clock.advance(60)
    for _ in range(5):
        bound_agent.health.set("timeout", "no answer")
    bound_agent.health.set("timeout", "still none")

    (problem,) = bound_agent.health.problems()
    assert (problem.detail, problem.since) == ("still none", since)
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
    assert bound_agent.changes == 2
    assert bound_agent.health.is_set("timeout")


async def test_cleared_condition_is_removed_and_logged_once(
    bound_agent: AgentParts, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "agent.tasks.health_board")
    bound_agent.health.set("clock-skew", "2 minutes")
    changes = bound_agent.changes

    bound_agent.health.clear({"clock-skew", "timeout"})
    bound_agent.health.clear({"clock-skew"})

    assert bound_agent.changes == changes + 1
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert not bound_agent.health.is_set("clock-skew")


async def test_an_undeclared_condition_raises_an_error(bound_agent: AgentParts) -> None:
    with pytest.raises(KeyError):
        bound_agent.health.set("surprise", "?")
