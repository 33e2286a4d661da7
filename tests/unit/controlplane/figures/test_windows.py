"""Tests of the local days of each period."""

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.figures.local_time import clock_of, date_of, day_of
from controlplane.figures.windows import Days, PeriodError, PeriodQuery, period_days

NOW = datetime(2026, 11, 1, 2, 30, tzinfo=UTC)  # 31 October in New York


def first_and_last(zone: str, **query: Any) -> tuple[date, date]:
    days = period_days(PeriodQuery(**query), clock_of(zone), NOW)
    return date_of(days.first), date_of(days.last)


@pytest.mark.parametrize(
    ("zone", "period", "first", "last"),
    [
        ("UTC", "today", date(2026, 11, 1), date(2026, 11, 1)),
        ("America/New_York", "today", date(2026, 10, 31), date(2026, 10, 31)),
        ("UTC", "yesterday", date(2026, 10, 31), date(2026, 10, 31)),
        ("UTC", "last7", date(2026, 10, 26), date(2026, 11, 1)),
        ("UTC", "thisMonth", date(2026, 11, 1), date(2026, 11, 1)),
        ("America/New_York", "thisMonth", date(2026, 10, 1), date(2026, 10, 31)),
    ],
)
def test_periods_consist_of_local_days(zone: str, period: str, first: date, last: date) -> None:
    assert first_and_last(zone, period=period) == (first, last)


def test_a_custom_period_has_the_given_days() -> None:
    days = (date(2026, 8, 1), date(2026, 10, 31))
    assert first_and_last("UTC", period="custom", first=days[0], last=days[1]) == days


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"period": "custom"}, "from"),
        ({"period": "custom", "first": date(2026, 1, 1)}, "to"),
        ({"period": "custom", "last": date(2026, 1, 1)}, "from"),
        ({"period": "custom", "first": date(2026, 1, 2), "last": date(2026, 1, 1)}, "to"),
        ({"period": "custom", "first": date(2026, 1, 1), "last": date(2027, 1, 2)}, "to"),
        ({"period": "custom", "first": date(1970, 12, 31), "last": date(1971, 1, 1)}, "from"),
        ({"period": "custom", "first": date(2999, 12, 31), "last": date(3000, 1, 1)}, "to"),
    ],
)
def test_the_error_for_an_invalid_period_names_the_field(query: dict[str, Any], field: str) -> None:
    with pytest.raises(PeriodError) as refused:
        period_days(PeriodQuery(**query), clock_of("UTC"), NOW)
    assert refused.value.field == field


def test_a_custom_period_can_have_366_days() -> None:
    days = (date(2028, 1, 1), date(2028, 12, 31))
    assert first_and_last("UTC", period="custom", first=days[0], last=days[1]) == days


def test_periods_except_custom_ignore_the_dates() -> None:
    today = (date(2026, 11, 1), date(2026, 11, 1))
    dates: dict[str, Any]
    for dates in (
        {"first": date(2026, 1, 1)},
        {"last": date(1970, 1, 1)},
        {"first": date(2026, 1, 2), "last": date(2026, 1, 1)},
    ):
        assert first_and_last("UTC", period="today", **dates) == today


@given(first=st.integers(0, 400_000), length=st.integers(1, 366))
def test_the_previous_period_has_the_same_length_and_directly_precedes_the_period(
    first: int, length: int
) -> None:
    days = Days(first, first + length - 1)
    assert days.previous.last == days.first - 1
    assert days.previous.last - days.previous.first == days.last - days.first


def test_days_are_counted_from_1970() -> None:
    assert day_of(date(1970, 1, 1)) == 0
    assert Days(1, 1).hours == (24, 47)
