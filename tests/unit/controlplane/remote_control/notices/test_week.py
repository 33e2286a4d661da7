"""A week of 500 devices: exactly what is to be told is told, none twice, none left open."""

import os
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest

from controlplane.alerts.facts import Listening, Seen, facts_of
from controlplane.alerts.rules import Key, Rules, Watch, judge
from tests.unit.controlplane.remote_control.notices.oracle import Told, expected
from tests.unit.controlplane.remote_control.notices.week import (
    BEGINS,
    DEVICES,
    PlayedDevice,
    PlayedLocation,
    Week,
    last_at_each,
    moment,
    played_week,
)

WINDOW_S = 180
WINDOW = timedelta(seconds=WINDOW_S)
LONG = os.environ.get("WEEKS", "")
"""`make test-week`: several weeks, looked at every 30 s."""
STEP_S = 30 if LONG else 60
SEEDS = range(1, 1 + int(LONG or 1))


def told(week: Week, step_s: int) -> list[Told]:
    """Let the service's rules tell of the week."""
    return sorted(each for location in week.locations for each in _told_of(location, week, step_s))


def _told_of(location: PlayedLocation, week: Week, step_s: int) -> Iterator[Told]:
    ticks = list(week.ticks(step_s))
    place = location.place()
    lasts = [last_at_each(device.beats(week.service_downs), ticks) for device in location.devices]
    wanted = [
        _wanted(location, device, last, ticks)
        for device, last in zip(location.devices, lasts, strict=True)
    ]
    watches: dict[Key, Watch] = {}
    listening = Listening(BEGINS, BEGINS)
    for look, at in enumerate(ticks):
        now = moment(at)
        listening = listening.go_on(now, timedelta(seconds=60))
        watched = {key.instance_id for key in watches}
        seen = []
        for device, last, want in zip(location.devices, lasts, wanted, strict=True):
            # The service looks at none of which all is well and nothing was said.
            if want[look] or (watched and device.instance_id in watched):
                is_broken = any(start <= at < end for start, end in device.broken)
                seen.append(Seen(device.instance_id, moment(last[look]), is_broken))
        others = len(location.devices) - len(seen)
        facts = facts_of(
            place, seen, now, WINDOW, others=others, others_heard=others,
            is_settled=listening.is_settled(now, WINDOW),
        )  # fmt: skip
        watches, changes = judge(watches, facts, now, Rules())
        for change in changes:
            instance_id, condition = change.key
            assert change.at <= now
            who = "" if instance_id is None else str(instance_id)
            yield at, location.name, who, condition, change.is_flapping, change.is_end


def _wanted(
    location: PlayedLocation, device: PlayedDevice, last: list[float], ticks: list[float]
) -> list[bool]:
    """Tell at which looks a device is silent, broken or in maintenance."""
    stretches = device.broken + device.maintenance + location.maintenance
    return [
        at - heard > WINDOW_S or any(start <= at < end for start, end in stretches)
        if stretches
        else at - heard > WINDOW_S
        for at, heard in zip(ticks, last, strict=True)
    ]


@pytest.mark.medium
@pytest.mark.parametrize("seed", SEEDS)
def test_a_week_tells_exactly_what_is_to_be_told(seed: int) -> None:
    week = played_week(seed)
    assert sum(len(location.devices) for location in week.locations) == DEVICES
    found = told(week, STEP_S)
    assert found == expected(week, STEP_S)
    open_now: Counter[tuple[str, str, str, bool]] = Counter()
    for _, location, device, condition, is_flapping, is_end in found:
        what = (location, device, condition, is_flapping)
        open_now[what] += -1 if is_end else 1
        assert open_now[what] in {0, 1}, "none twice"
    assert not +open_now, "none left open"
    kinds = Counter((condition, is_flapping) for _, _, _, condition, is_flapping, _ in found)
    assert set(kinds) >= {
        ("offline", False), ("offline", True), ("broken", False), ("dark", False), ("dark", True),
    }  # fmt: skip
