from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.presentation.humanize import (
    Value,
    age_s,
    ago,
    duration_between,
    format_bytes,
    format_milliseconds,
    format_seconds,
    format_timestamp,
    format_value,
    label_of,
)
from agent.presentation.plain_text import plain

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("key", "value", "label", "displayed"),
    [
        ("memory.totalBytes", 8_187_342_848, "Total", "7.6 GiB"),
        ("disk./.freeBytes", 0, "Free", "0 bytes"),
        ("os.uptimeSeconds", 399_850.2, "Uptime", "4 d 15 h"),
        ("os.clockOffsetSeconds", -0.0031, "Clock offset", "-3.1 ms"),
        ("os.clockOffsetMilliseconds", 12, "Clock offset", "12 ms"),
        ("browser.roundTripMs", 1500, "Round trip", "1.5 s"),
        ("memory.usedPercent", 37.5, "Used", "37.5 %"),
        ("cpu.useFraction", 0.1225, "Use", "12.2 %"),
        ("hardware.temperatureCelsius", 61.0, "Temperature", "61 °C"),
        ("cpu.frequencyMegahertz", 2400.4, "Frequency", "2400 MHz"),
        ("browser.approximateMemoryGiB", 8, "Approximate memory", "8 GiB"),
        ("browser.downlinkMbps", 9.65, "Downlink", "9.7 Mbit/s"),
        ("browser.displayWidthPixels", 1920, "Display width", "1920 px"),
        ("interface.speedMegabitsPerSecond", 1000, "Speed", "1000 Mbit/s"),
        ("wifi.signalDbm", -61, "Signal", "-61 dBm"),
        ("os.bootTime", "2026-11-16T05:00:02+01:00", "Boot time", "2026-11-16 04:00:02 UTC"),
        ("cpu.load15", 0.4215, "Load 15", "0.42"),
        ("hardware.cpuModel", "N5105", "CPU model", "N5105"),
        ("network.dnsServers", ("a", "b"), "DNS servers", "a, b"),
        ("network.dnsServers", (), "DNS servers", "none"),
        ("network.ipv4Address", "", "IPv4 address", "(empty)"),
        ("os.pendingReboot", True, "Pending reboot", "yes"),
        ("a.bytes", 5, "Bytes", "5"),
    ],
)
def test_field_labels_and_values_are_formatted(
    key: str, value: Value, label: str, displayed: str
) -> None:
    assert (label_of(key), format_value(key, value)) == (label, displayed)


@pytest.mark.parametrize(
    ("seconds", "displayed"),
    [
        (0, "0 s"),
        (0.35, "0.35 s"),
        (12.34, "12.3 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min"),
        (60, "1 min"),
        (86_400, "1 d"),
        (90_061, "1 d 1 h"),
        (-75, "-1 min 15 s"),
    ],
)
def test_durations_are_formatted(seconds: float, displayed: str) -> None:
    assert format_seconds(seconds) == displayed


@pytest.mark.parametrize(
    ("seconds", "displayed"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (7200, "2 h"), (90000, "1 d")],
)
def test_durations_are_formatted_with_their_largest_unit(seconds: int, displayed: str) -> None:
    assert format_seconds(seconds, units=1) == displayed
    assert ago((NOW - timedelta(seconds=seconds)).isoformat(), NOW) == f"{displayed} ago"


def test_missing_invalid_and_future_timestamps_are_described() -> None:
    assert ago(None) == "never"
    assert ago("soon") == "at an unreadable time"
    assert ago("2999-01-01T00:00:00+00:00").endswith("ahead of this machine's clock")
    assert ago((NOW + timedelta(seconds=1.9)).isoformat(), NOW) == "0 s ago"
    assert ago("2026-01-01", NOW) == "1 d ago"
    assert age_s("soon") is None


def test_latencies_are_formatted() -> None:
    assert [format_milliseconds(n) for n in (0, 0.04, 0.44, 9.96, 12.4, 999.6)] == [
        "0 ms",
        "<0.1 ms",
        "0.4 ms",
        "10 ms",
        "12 ms",
        "1 s",
    ]


def test_a_size_that_rounds_to_1024_has_the_next_unit() -> None:
    sizes = (1023, 1024, 1023.94 * 1024, 1023.96 * 1024)
    assert [format_bytes(size) for size in sizes] == [
        "1023 bytes",
        "1 KiB",
        "1023.9 KiB",
        "1 MiB",
    ]


def test_pebibytes_are_the_largest_unit_of_bytes() -> None:
    assert format_bytes(2.0**70) == "1048576 PiB"


def test_invalid_timestamps_are_displayed_as_text() -> None:
    assert format_timestamp("yester\x1bday") == "yester\N{REPLACEMENT CHARACTER}day"
    assert format_timestamp("9999-12-31T23:59:59-14:00") == "9999-12-31T23:59:59-14:00"


def test_a_duration_between_timestamps_respects_their_utc_offsets() -> None:
    assert duration_between("2026-11-20T19:00:00Z", "2026-11-20T20:01:00+01:00") == "1 min"


def test_a_duration_to_an_invalid_timestamp_is_unknown() -> None:
    assert duration_between("2026-11-20T19:04:12Z", "soon") is None


@given(
    st.text(max_size=40) | st.sampled_from(["a.bBytes", "a.bSeconds", "a.bMs", "a.bCelsius"]),
    NUMBERS | st.booleans() | st.text(max_size=60) | st.lists(st.text(max_size=9)).map(tuple),
)
def test_any_value_is_formatted_as_short_plain_text(key: str, value: Value) -> None:
    displayed = format_value(key, value)
    assert displayed == plain(displayed)
    assert displayed
    assert label_of(key) == plain(label_of(key))
    if not isinstance(value, str | tuple):
        assert len(displayed) < 32
