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
from tests.unit.agent.tasks.harness import Harness, running, settle, until


async def test_a_heartbeat_is_sent_for_the_binding(home: Harness) -> None:
    await home.heartbeat.send()

    (heartbeat,) = home.client.named("heartbeat")
    assert (heartbeat.binding_id, heartbeat.foreground) == (BINDING, False)
    assert home.heartbeat.last_at == home.clock.now()


async def test_no_heartbeat_is_sent_without_a_confirmed_binding(home: Harness) -> None:
    home.binding_state.revoke()

    await home.heartbeat.send()

    assert home.client.calls == []
    assert home.heartbeat.last_at is None


async def test_outage_delays_the_heartbeat(home: Harness) -> None:
    home.client.script["heartbeat"].extend([ServiceUnavailable("timeout", "silence")] * 3)

    await home.heartbeat.send()

    assert len(home.client.named("heartbeat")) == 4
    assert home.heartbeat.last_at is not None


async def test_refused_heartbeat_rechecks_the_binding(home: Harness) -> None:
    home.client.always["heartbeat"] = Refused(404, None, "unknown binding")
    async with running(home.enrollment.run):
        await settle()
        home.client.always["current"] = None
        await home.heartbeat.send()
        await until(lambda: home.binding_state.is_revoked)

    assert "revoked" in home.codes()


@pytest.mark.parametrize("error", [BodyRejected(400, "no"), BodyTooLarge("no")])
async def test_rejected_heartbeat_sets_a_condition(home: Harness, error: ServiceError) -> None:
    home.client.script["heartbeat"].append(error)

    await home.heartbeat.send()

    assert home.codes()
    assert home.binding_state.is_bound
    await home.heartbeat.send()
    assert home.codes() == set()


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
    home: Harness, minutes: float, detail: str | None
) -> None:
    home.client.skew = ClockSkew(timedelta(minutes=minutes))

    await home.heartbeat.send()

    assert [p.detail for p in home.health.problems()] == ([detail] if detail else [])
    home.client.skew = ClockSkew()
    await home.heartbeat.send()
    assert home.codes() == set()


# --------------------------------------------------------------- binding state


async def test_a_lost_binding_wakes_all_waiting_tasks(home: Harness) -> None:
    waiting = [asyncio.create_task(home.binding_state.wait_for_loss()) for _ in range(2)]
    await settle()
    assert not any(task.done() for task in waiting)

    home.binding_state.adopt(record(binding_id=OTHER_BINDING), "loc-0001")

    await asyncio.gather(*waiting)
    assert home.binding_state.is_bound
    assert home.binding_state.binding_id == OTHER_BINDING


async def test_a_revocation_is_stored_and_can_be_undone(home: Harness) -> None:
    home.binding_state.revoke()
    home.binding_state.revoke()
    saved = home.record_file.load()
    assert saved is not None
    assert saved.is_revoked
    assert not home.binding_state.is_bound

    home.binding_state.confirm()

    saved = home.record_file.load()
    assert saved is not None
    assert not saved.is_revoked
    assert (await home.binding_state.wait_until_bound()).binding_id == BINDING


async def test_a_binding_that_cannot_be_saved_is_not_used(stranger: Harness) -> None:
    (stranger.state.path / "device.json").mkdir()

    with pytest.raises(StateError):
        stranger.binding_state.adopt(record(), "loc-0001")

    assert stranger.binding_state.binding is None
    assert stranger.binding_state.binding_id is None
    assert not stranger.binding_state.is_bound


async def test_a_device_without_a_binding_waits_until_one_is_stored(stranger: Harness) -> None:
    with pytest.raises(RuntimeError):
        stranger.binding_state.confirm()
    waiting = asyncio.create_task(stranger.binding_state.wait_until_bound())
    await asyncio.sleep(0)
    assert not waiting.done()

    stranger.binding_state.adopt(record(instance_id=UUID(int=3)), "loc-0001")

    assert (await waiting).instance_id == UUID(int=3)


# --------------------------------------------------------------- health board


async def test_each_change_of_a_condition_is_logged_once_and_keeps_its_first_timestamp(
    home: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "agent.tasks.health_board")
    home.health.set("timeout", "no answer")
    since = home.health.problems()[0].since
    home.clock.advance(60)
    for _ in range(5):
        home.health.set("timeout", "no answer")
    home.health.set("timeout", "still none")

    (problem,) = home.health.problems()
    assert (problem.detail, problem.since) == ("still none", since)
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
    assert home.changes == 2
    assert home.health.is_set("timeout")


async def test_cleared_condition_is_removed_and_logged_once(
    home: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "agent.tasks.health_board")
    home.health.set("clock-skew", "2 minutes")
    changes = home.changes

    home.health.clear({"clock-skew", "timeout"})
    home.health.clear({"clock-skew"})

    assert home.changes == changes + 1
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert not home.health.is_set("clock-skew")


async def test_a_condition_must_be_declared(home: Harness) -> None:
    with pytest.raises(KeyError):
        home.health.set("surprise", "?")
