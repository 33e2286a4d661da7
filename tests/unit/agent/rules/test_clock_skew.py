from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.rules.clock_skew import ClockSkew

NOW = datetime(2026, 11, 20, 19, 0, tzinfo=UTC)
moments = st.datetimes(timezones=st.just(UTC))


@pytest.mark.parametrize(
    ("seconds", "offset_s"), [(0, 0), (1, 0), (2, 0), (-2, 0), (3, 3), (-3, -3), (7200, 7200)]
)
def test_small_differences_are_no_skew(seconds: int, offset_s: int) -> None:
    skew = ClockSkew.of(timedelta(seconds=seconds))

    assert skew.offset == timedelta(seconds=offset_s)


def test_expiry_is_judged_by_the_service_clock() -> None:
    ahead = ClockSkew(timedelta(hours=2))

    assert ahead.service_time(NOW) == NOW + timedelta(hours=2)
    assert ahead.is_past(NOW + timedelta(hours=1), NOW)
    assert ahead.is_past(NOW + timedelta(hours=2), NOW)
    assert not ahead.is_past(NOW + timedelta(hours=2, seconds=1), NOW)
    assert not ClockSkew(-timedelta(hours=2)).is_past(NOW - timedelta(hours=1), NOW)


@given(moments, moments, moments, moments)
def test_no_clock_is_too_wrong_to_be_judged(
    service: datetime, local: datetime, moment: datetime, later: datetime
) -> None:
    skew = ClockSkew.of(service - local)

    assert skew.is_past(moment, later) == ((later - moment) + skew.offset >= timedelta(0))
