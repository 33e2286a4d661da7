"""Tests of the lines about watched devices among the limitations of a network report."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.wire.payloads.watched_devices import (
    KIND_WORDS,
    NAME_MAX,
    WatchedLine,
    WatchedState,
    parse_watched,
)

ADDRESS, NEW_ADDRESS, MAC = "192.168.1.40", "192.168.1.61", "02:00:00:00:00:07"


@pytest.mark.parametrize(
    "line",
    [
        WatchedLine("Bar", "payment terminal", "present", ADDRESS),
        WatchedLine("Bar", "payment terminal", "moved", NEW_ADDRESS, ADDRESS),
        WatchedLine("Bar", "payment terminal", "moved", NEW_ADDRESS, ADDRESS, MAC),
        WatchedLine('The "old" one: no answer', "scale", "absent", ADDRESS),
        WatchedLine("Bar", "device", "absent"),
        WatchedLine("Bar", "cash drawer", "replaced", ADDRESS, other_mac=MAC),
        WatchedLine("Bar", "device", "unknown", ADDRESS, reason="the time was up"),
        WatchedLine("Bar", "device", "unknown", reason="no: network"),
    ],
    ids=lambda line: line.state,
)
def test_a_line_is_parsed_as_it_was_written(line: WatchedLine) -> None:
    assert parse_watched(str(line)) == line


@given(
    st.text(min_size=1, max_size=NAME_MAX),
    st.sampled_from(tuple(KIND_WORDS.values())),
    st.sampled_from(("present", "absent")),
)
def test_any_name_is_parsed(name: str, kind: str, state: WatchedState) -> None:
    line = WatchedLine(name, kind, state, ADDRESS)
    assert parse_watched(str(line)) == line


@given(st.text(max_size=80))
def test_limitations_that_are_not_about_watched_devices_are_not_parsed(text: str) -> None:
    assert parse_watched(text) is None
    assert parse_watched(f"{text} answers ARP for 212 addresses (proxy ARP)") is None
