from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.rules.clock_skew import ClockSkew, ServiceClock

NOW = datetime(2026, 11, 20, 19, 0, tzinfo=UTC)
timestamps = st.datetimes(timezones=st.just(UTC))


@pytest.mark.parametrize(
    ("seconds", "offset_s"), [(0, 0), (1, 0), (2, 0), (-2, 0), (3, 3), (-3, -3), (7200, 7200)]
)
def test_small_clock_differences_are_ignored(seconds: int, offset_s: int) -> None:
    skew = ClockSkew.of(timedelta(seconds=seconds))

    assert skew.offset == timedelta(seconds=offset_s)


def test_expiry_is_decided_by_the_service_clock() -> None:
    ahead = ClockSkew(timedelta(hours=2))

    assert ahead.is_past(NOW + timedelta(hours=1), NOW)
    assert ahead.is_past(NOW + timedelta(hours=2), NOW)
    assert not ahead.is_past(NOW + timedelta(hours=2, seconds=1), NOW)
    assert not ClockSkew(-timedelta(hours=2)).is_past(NOW - timedelta(hours=1), NOW)


@given(timestamps, timestamps, timestamps, timestamps)
def test_is_past_is_exact_for_any_timestamps_and_any_clock_skew(
    service: datetime, local: datetime, timestamp: datetime, local_time: datetime
) -> None:
    skew = ClockSkew.of(service - local)

    is_past = (local_time - timestamp) + skew.offset >= timedelta(0)
    assert skew.is_past(timestamp, local_time) == is_past


@pytest.mark.parametrize(
    ("local_s", "monotonic_s", "offset_s"),
    [
        (0, 100.0, 3600),
        # A minute has passed on both clocks: the difference has not changed.
        (60, 160.0, 3600),
        # A user has corrected this machine's clock. The service's time is calculated from the
        # monotonic clock.
        (3660, 160.0, 0),
        # A user has set this machine's clock back by an hour.
        (-3540, 160.0, 7200),
        # This machine's clock has stood still while the monotonic clock ran.
        (0, 1000.0, 4500),
    ],
)
def test_the_clock_skew_is_calculated_with_the_monotonic_clock(
    local_s: int, monotonic_s: float, offset_s: int
) -> None:
    service_clock = ServiceClock(service_time=NOW + timedelta(hours=1), read_at_s=100.0)

    skew = service_clock.skew(local_time=NOW + timedelta(seconds=local_s), monotonic_s=monotonic_s)

    assert skew == ClockSkew(timedelta(seconds=offset_s))


def test_clock_skew_is_zero_before_the_first_reply() -> None:
    assert ClockSkew().offset == timedelta(0)
    assert ClockSkew().is_past(NOW, NOW)
    assert not ClockSkew().is_past(NOW + timedelta(microseconds=1), NOW)
