"""Tests of the events between two states of a machine and at a start of the agent, of the figures
of an hour, of the pauses between probes, and of local hours.
"""

from datetime import UTC, datetime, timedelta

import pytest

from agent.config.local_hours import parse_local_hours
from agent.rules.connectivity.cause import LinkState
from agent.rules.connectivity.events import (
    DISK_FLOOR_BYTES,
    MachineState,
    describe_start,
    link_events,
    machine_events,
)
from agent.rules.connectivity.hours import HourBuilder
from agent.rules.connectivity.pace import ProbePace

AT = datetime(2026, 11, 22, 18, 0, tzinfo=UTC)
LINK = LinkState(
    addresses=("192.168.1.20",),
    gateway="192.168.1.1",
    gateway_mac="02:00:00:00:00:01",
    access_point="02:00:00:00:00:0a",
)


@pytest.mark.parametrize(
    ("after", "kinds"),
    [
        (LINK, []),
        (LinkState(), []),
        (LinkState(addresses=("192.168.1.21",)), ["address-changed"]),
        (LinkState(addresses=("192.168.1.20", "2001:db8::1")), []),
        (LinkState(gateway="192.168.1.254"), ["gateway-changed"]),
        (LinkState(gateway="192.168.1.1", gateway_mac="02:00:00:00:00:02"), ["gateway-changed"]),
        (LinkState(gateway="192.168.1.1"), []),
        (LinkState(access_point="02:00:00:00:00:0b"), ["access-point-changed"]),
    ],
)
def test_changes_of_the_link_are_events(after: LinkState, kinds: list[str]) -> None:
    assert [event.kind for event in link_events(LINK, after, AT)] == kinds


def test_a_disk_becomes_full_once() -> None:
    not_full, full = MachineState(0, DISK_FLOOR_BYTES), MachineState(0, DISK_FLOOR_BYTES - 1)
    assert [event.kind for event in machine_events(not_full, full, AT)] == ["disk-full"]
    assert list(machine_events(full, full, AT)) == []


def test_programs_ended_since_the_previous_state_are_counted() -> None:
    assert list(machine_events(MachineState(), MachineState(3), AT)) == []
    (event,) = machine_events(MachineState(3), MachineState(5), AT)
    assert (event.kind, event.detail) == ("memory-exhausted", "2 programs were ended")


@pytest.mark.parametrize(
    ("values", "boot_id", "kinds"),
    [
        ({}, "b", []),
        ({"boot-id": "a", "stopped": "cleanly"}, "b", ["machine-started"]),
        ({"boot-id": "a", "stopped": ""}, "b", ["power-lost"]),
        ({"boot-id": "a", "stopped": "cleanly"}, "a", ["agent-started"]),
        ({"boot-id": "a", "stopped": ""}, "a", ["agent-killed"]),
        ({"boot-id": "", "stopped": ""}, "a", ["agent-killed"]),
        ({"boot-id": "a", "stopped": ""}, None, ["agent-killed"]),
    ],
)
def test_a_start_shows_how_the_previous_run_ended(
    values: dict[str, str], boot_id: str | None, kinds: list[str]
) -> None:
    assert [event.kind for event in describe_start(values, boot_id, AT)] == kinds


def test_an_hour_has_percentiles_the_weakest_signal_and_the_new_errors() -> None:
    hours = HourBuilder(AT)
    for milliseconds in range(1, 101):
        hours.add_heartbeat(float(milliseconds))
    hours.add_heartbeat(None)
    for signal, errors in ((-60, 100), (-71, 103), (-65, 2)):
        hours.add_link(signal, errors)
    hour = hours.begin(AT + timedelta(minutes=59, seconds=59))
    assert hour is None
    hour = hours.begin(AT + timedelta(hours=1))
    assert hour is not None
    assert (hour.heartbeats, hour.failures) == (101, 1)
    assert (hour.round_trip_p50_ms, hour.round_trip_p95_ms) == (50.0, 95.0)
    assert (hour.signal_dbm, hour.link_errors) == (-71, 5)
    assert hours.hour() is None


def test_probes_slow_down_in_a_long_interruption() -> None:
    pace, at = ProbePace(), AT
    pauses = []
    while at < AT + timedelta(hours=2):
        pauses.append(pace.pause_s(at, AT))
        at += timedelta(seconds=pauses[-1])
    # 5 s in the first 5 minutes, 10 s until the end of the first hour, then 60 s
    assert (pauses.count(5.0), pauses.count(10.0), pauses.count(60.0)) == (60, 330, 60)


@pytest.mark.parametrize(
    ("text", "hour", "is_in"),
    [
        ("23:00-06:00", 23, True),
        ("23:00-06:00", 5, True),
        ("23:00-06:00", 6, False),
        ("01:00-02:00", 1, True),
        ("01:00-02:00", 2, False),
    ],
)
def test_local_hours_may_include_midnight(text: str, hour: int, is_in: bool) -> None:
    hours = parse_local_hours(text)
    assert hours is not None
    assert hours.contains(AT.replace(hour=hour)) is is_in


@pytest.mark.parametrize("text", ["23:00", "23-6", "24:00-06:00", "06:00-06:00", "a-b"])
def test_invalid_hours_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="two times"):
        parse_local_hours(text)
