"""Tests with a simulated week of a fleet: exactly the expected alerts fire, and each resolves."""

import os
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest

from controlplane.alerts.evaluation import BoundDevice, Monitoring, facts_of
from controlplane.alerts.rules import ConditionState, Key, Rules, evaluate
from tests.unit.controlplane.alerts.oracle import Event, expected_events
from tests.unit.controlplane.alerts.week import (
    BEGINS,
    DEVICES,
    Week,
    WeekDevice,
    WeekLocation,
    last_at_each,
    simulated_week,
    time_at,
)

ONLINE_WINDOW_S = 180
ONLINE_WINDOW = timedelta(seconds=ONLINE_WINDOW_S)
WEEKS = os.environ.get("WEEKS", "")
"""The number of weeks that `make test-week` tests; "" in other runs."""
STEP_S = 30 if WEEKS else 60
SEEDS = range(1, 1 + int(WEEKS or 1))


def events(week: Week, step_s: int) -> list[Event]:
    """Return the alerts that the rules of the service produce, in order of time."""
    return sorted(each for location in week.locations for each in _events(location, week, step_s))


def _events(location: WeekLocation, week: Week, step_s: int) -> Iterator[Event]:
    ticks = list(week.ticks(step_s))
    schedule = location.schedule()
    last_heartbeats = [
        last_at_each(device.heartbeats(week.service_downs), ticks) for device in location.devices
    ]
    device_flags = [
        _has_problem_or_maintenance(location, device, last, ticks)
        for device, last in zip(location.devices, last_heartbeats, strict=True)
    ]
    states: dict[Key, ConditionState] = {}
    monitoring = Monitoring(BEGINS, BEGINS)
    for index, at in enumerate(ticks):
        now = time_at(at)
        monitoring = monitoring.after_evaluation(now, timedelta(seconds=60))
        with_state = {key.instance_id for key in states}
        bound = []
        for device, last, flags in zip(
            location.devices, last_heartbeats, device_flags, strict=True
        ):
            # As in the service, only devices with a problem, a maintenance window or a stored
            # state are evaluated.
            if flags[index] or (with_state and device.instance_id in with_state):
                is_broken = any(start <= at < end for start, end in device.broken)
                bound.append(BoundDevice(device.instance_id, time_at(last[index]), is_broken))
        others = len(location.devices) - len(bound)
        facts = facts_of(
            schedule, bound, now, ONLINE_WINDOW, other_count=others, other_online_count=others,
            can_detect_offline=monitoring.can_detect_offline(now, ONLINE_WINDOW),
        )  # fmt: skip
        states, transitions = evaluate(states, facts, now, Rules())
        for transition in transitions:
            instance_id, condition = transition.key
            assert transition.at <= now
            device_id = "" if instance_id is None else str(instance_id)
            yield (
                at,
                location.name,
                device_id,
                condition,
                transition.is_flapping,
                transition.is_resolved,
            )


def _has_problem_or_maintenance(
    location: WeekLocation,
    device: WeekDevice,
    last_heartbeats: list[float],
    ticks: list[float],
) -> list[bool]:
    """Return for each evaluation whether the device is offline, broken or in maintenance."""
    stretches = device.broken + device.maintenance + location.maintenance
    return [
        at - last_s > ONLINE_WINDOW_S or any(start <= at < end for start, end in stretches)
        if stretches
        else at - last_s > ONLINE_WINDOW_S
        for at, last_s in zip(ticks, last_heartbeats, strict=True)
    ]


@pytest.mark.medium
@pytest.mark.parametrize("seed", SEEDS)
def test_a_week_has_exactly_the_expected_alerts(seed: int) -> None:
    week = simulated_week(seed)
    assert sum(len(location.devices) for location in week.locations) == DEVICES
    result = events(week, STEP_S)
    assert result == expected_events(week, list(week.ticks(STEP_S)))
    open_now: Counter[tuple[str, str, str, bool]] = Counter()
    for _, location, device, condition, is_flapping, is_resolved in result:
        subject = (location, device, condition, is_flapping)
        open_now[subject] += -1 if is_resolved else 1
        assert open_now[subject] in {0, 1}, "an alert fired twice, or resolved twice"
    assert not +open_now, "an alert did not resolve"
    kinds = Counter((condition, is_flapping) for _, _, _, condition, is_flapping, _ in result)
    assert set(kinds) >= {
        ("offline", False), ("offline", True), ("broken", False), ("site_outage", False),
        ("site_outage", True),
    }  # fmt: skip
