"""Tests of local days near clock changes.

Such a day can be longer or shorter than 24 hours, skipped, or split into two intervals.
"""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.figures.local_time import (
    clock_of,
    date_of,
    day_of,
    hour_of,
    intervals,
    offsets,
)
from tests.unit.controlplane.figures.merchants import CURRENT_TIMES, ZONES

VALID_ZONES = [zone for zone in ZONES if zone is not None and not zone.startswith("Mars")]


def length(zone: str, day: date) -> timedelta:
    pieces = intervals(ZoneInfo(zone), day_of(day), day_of(day))
    return sum((end - start for start, end in pieces), timedelta())


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", date(2026, 3, 29), 23),
        ("Europe/Berlin", date(2026, 10, 25), 25),
        ("America/New_York", date(2026, 3, 8), 23),
        ("America/New_York", date(2026, 11, 1), 25),
        ("Australia/Lord_Howe", date(2026, 4, 5), 24.5),
        ("Australia/Lord_Howe", date(2026, 10, 4), 23.5),
        ("Asia/Dubai", date(2026, 3, 29), 24),
        ("Pacific/Apia", date(2011, 12, 30), 0),
        ("Pacific/Pago_Pago", date(2026, 1, 1), 24),
        ("Pacific/Kiritimati", date(2026, 1, 1), 24),
    ],
)
def test_local_days_have_their_real_length(zone: str, day: date, hours: float) -> None:
    assert length(zone, day) == timedelta(hours=hours)


def test_a_local_day_can_consist_of_two_intervals() -> None:
    """At 00:01 on 7 November 2010, clocks in St. John's were set back to 23:01 on 6 November."""
    zone, day = ZoneInfo("America/St_Johns"), day_of(date(2010, 11, 6))
    assert len(intervals(zone, day, day)) == 2
    assert len(intervals(zone, day, day + 1)) == 1
    assert length("America/St_Johns", date(2010, 11, 6)) == timedelta(hours=24, minutes=59)


@given(
    zone=st.sampled_from(VALID_ZONES),
    near=st.sampled_from(CURRENT_TIMES),
    minutes=st.integers(-3 * 1440, 3 * 1440),
    first=st.integers(-3, 3),
    days=st.integers(0, 3),
)
def test_the_intervals_of_days_contain_exactly_the_timestamps_with_these_local_dates(
    zone: str, near: datetime, minutes: int, first: int, days: int
) -> None:
    timestamp, day = near + timedelta(minutes=minutes), day_of(near.date()) + first
    local = timestamp.astimezone(ZoneInfo(zone))
    result = intervals(ZoneInfo(zone), day, day + days)
    is_in = any(start <= timestamp < end for start, end in result)
    assert is_in == (date_of(day) <= local.date() <= date_of(day + days))
    assert hour_of(timestamp, ZoneInfo(zone)) == day_of(local.date()) * 24 + local.hour
    assert list(result) == sorted(result)


@given(zone=st.sampled_from(VALID_ZONES), near=st.sampled_from(CURRENT_TIMES))
def test_intervals_of_constant_utc_offset_cover_the_period(zone: str, near: datetime) -> None:
    pieces = offsets(ZoneInfo(zone), near - timedelta(days=200), near)
    assert pieces[0][0] == near - timedelta(days=200)
    assert pieces[-1][1] == near
    for (_, end, _), (start, _, _) in pairwise(pieces):
        assert start == end
    for start, end, offset in pieces:
        for at_time in (start, end - timedelta(microseconds=1)):
            assert at_time.astimezone(ZoneInfo(zone)).utcoffset() == offset


@pytest.mark.parametrize("zone", [None, "", "Mars/Olympus_Mons", "Europe", "../etc/passwd", "\0"])
def test_an_invalid_time_zone_falls_back_to_utc(zone: str | None) -> None:
    clock = clock_of(zone)
    assert (clock.name, clock.fell_back, clock.zone) == ("UTC", True, UTC)


def test_a_valid_time_zone_is_used() -> None:
    assert clock_of("Asia/Kathmandu").name == "Asia/Kathmandu"
    assert not clock_of("Asia/Kathmandu").fell_back
