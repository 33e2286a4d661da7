"""Tests of single alert rules, without a database."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from controlplane.alerts.evaluation import BoundDevice, facts_of
from controlplane.alerts.rules import (
    ConditionState,
    Facts,
    Key,
    Rules,
    Transition,
    Value,
    advance,
    evaluate,
)
from controlplane.devices.locations.status import Maintenance, Schedule

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
DEVICE = UUID(int=1)
OFFLINE = Key(DEVICE, "offline")


def test_an_unknown_value_does_not_delay_the_end_of_an_alert() -> None:
    resolving = ConditionState(is_firing=True, inactive_since=NOW)
    state, _ = advance(OFFLINE, resolving, Value.UNKNOWN, NOW + MINUTE, Rules(), may_fire=True)
    _, result = advance(OFFLINE, state, Value.INACTIVE, NOW + 5 * MINUTE, Rules(), may_fire=True)
    assert result == [Transition(OFFLINE, False, True, NOW)]


def test_a_device_in_maintenance_counts_neither_as_bound_nor_as_online() -> None:
    schedule = Schedule(maintenance=(Maintenance(DEVICE, NOW - HOUR, NOW + HOUR),))
    bound = [
        BoundDevice(DEVICE, NOW, is_broken=False),
        BoundDevice(UUID(int=2), NOW, is_broken=False),
    ]
    facts = facts_of(schedule, bound, NOW, 3 * MINUTE)
    assert (facts.device_count, facts.online_count) == (1, 1)


def test_no_device_is_counted_during_a_maintenance_window_of_its_location() -> None:
    schedule = Schedule(maintenance=(Maintenance(None, NOW - HOUR, NOW + HOUR),))
    during = facts_of(schedule, [], NOW, 3 * MINUTE, other_count=4, other_online_count=3)
    afterwards = facts_of(schedule, [], NOW + HOUR, 3 * MINUTE, other_count=4, other_online_count=3)
    assert (during.device_count, during.online_count) == (0, 0)
    assert (afterwards.device_count, afterwards.online_count) == (4, 3)


def test_no_device_is_reported_offline_while_the_outage_of_its_location_is_firing() -> None:
    states = {
        Key(None, "site_outage"): ConditionState(is_firing=True, inactive_since=NOW),
        OFFLINE: ConditionState(is_active=True, active_since=NOW - HOUR, changes=(NOW - HOUR,)),
    }
    facts = Facts(
        device_count=9, online_count=8, offline={DEVICE: NOW - HOUR}, not_online=frozenset({DEVICE})
    )
    assert evaluate(states, facts, NOW + MINUTE, Rules())[1] == []
