"""Tests of opening hours in local time: parsing, formatting, and changes of the clock."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.devices.locations.opening_hours import (
    DAY_MINUTES,
    Interval,
    OpeningHours,
    format_hours,
    read_hours,
)

ZONES = ("Europe/Riga", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC")
MINUTE = timedelta(minutes=1)
PERIOD = (datetime(2026, 1, 1), datetime(2027, 12, 31))  # noqa: DTZ001 - the tests add UTC


@st.composite
def hours(draw: st.DrawFn) -> OpeningHours:
    results = set()
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, DAY_MINUTES - 1))
        end = draw(st.integers(1, DAY_MINUTES).filter(lambda minute: minute != start))  # noqa: B023
        results.add(Interval(draw(st.integers(0, 6)), start, end))
    return OpeningHours(draw(st.sampled_from(ZONES)), tuple(sorted(results)))


def is_open_by_the_clock(opening: OpeningHours, timestamp: datetime) -> bool:
    """Return whether the local time is in an interval of the opening hours.

    The result is wrong on days on which the clocks are changed.
    """
    local = timestamp.astimezone(ZoneInfo(opening.zone))
    minute = local.hour * 60 + local.minute
    for interval in opening.intervals:
        crosses_midnight = interval.end <= interval.start
        end = DAY_MINUTES if crosses_midnight else interval.end
        if local.weekday() == interval.weekday and interval.start <= minute < end:
            return True
        if (
            crosses_midnight
            and local.weekday() == (interval.weekday + 1) % 7
            and minute < interval.end
        ):
            return True
    return False


def has_constant_offset(zone: str, timestamp: datetime) -> bool:
    """Return whether the clocks stay unchanged for two days before and after ``timestamp``."""
    local = [timestamp.astimezone(ZoneInfo(zone)) + timedelta(days=by) for by in (-2, 0, 2)]
    return len({at.utcoffset() for at in local}) == 1


@given(hours(), st.datetimes(*PERIOD))
def test_opening_hours_follow_the_local_time(opening: OpeningHours, at: datetime) -> None:
    timestamp = at.replace(second=0, microsecond=0, tzinfo=UTC)
    if not has_constant_offset(opening.zone, timestamp):
        return
    opened_at = opening.opened_at(timestamp)
    assert (opened_at is not None) == is_open_by_the_clock(opening, timestamp)
    if opened_at is not None and timestamp - opened_at < timedelta(days=1):
        assert is_open_by_the_clock(opening, opened_at)
        assert not is_open_by_the_clock(opening, opened_at - MINUTE)


@given(hours(), st.dates(date(2026, 1, 1), date(2027, 12, 1)), st.integers(1, 60))
def test_spans_are_disjoint_ordered_and_within_the_period(
    opening: OpeningHours, day: date, days: int
) -> None:
    since = datetime.combine(day, datetime.min.time(), UTC)
    until = since + timedelta(days=days)
    spans = opening.spans(since, until)
    boundaries = [boundary for span in spans for boundary in span]
    assert boundaries == sorted(set(boundaries))
    assert all(since <= boundary <= until for boundary in boundaries)
    # The spans of the two halves have the same total length as the spans of the whole period.
    middle = since + (until - since) / 2
    halves = opening.spans(since, middle) + opening.spans(middle, until)
    assert sum((end - start for start, end in halves), timedelta()) == sum(
        (end - start for start, end in spans), timedelta()
    )


@given(hours())
def test_formatted_hours_are_parsed_to_the_same_hours(opening: OpeningHours) -> None:
    assert read_hours(opening.zone, format_hours(opening)) == opening


@pytest.mark.parametrize(
    ("line", "day", "length_h"),
    [
        ("Sun 00:00-24:00", date(2026, 3, 29), 23),
        ("Sun 00:00-24:00", date(2026, 10, 25), 25),
        ("Sat 22:00-04:00", date(2026, 3, 28), 5),
        ("Sat 22:00-04:00", date(2026, 10, 24), 7),
        ("Sun 03:30-05:00", date(2026, 3, 29), 0.5),  # 03:30 does not exist: 04:30 is used
        (
            "Sun 03:30-03:45",
            date(2026, 10, 25),
            1.25,
        ),  # each time occurs twice: from the first 03:30 to the second 03:45
    ],
)
def test_spans_have_the_real_length_on_days_with_clock_changes(
    line: str, day: date, length_h: float
) -> None:
    zone = ZoneInfo("Europe/Riga")
    since = datetime.combine(day, datetime.min.time(), zone).astimezone(UTC)
    spans = read_hours("Europe/Riga", [line]).spans(since, since + timedelta(days=3))
    assert sum((end - start for start, end in spans), timedelta()) == timedelta(hours=length_h)


def test_intervals_can_cross_midnight_and_are_joined_if_they_meet() -> None:
    opening = read_hours("UTC", ["Fri-Sat 22:00-02:00", "Sat 02:00-06:00"])
    friday = datetime(2026, 11, 20, tzinfo=UTC)
    assert opening.spans(friday, friday + timedelta(days=3)) == [
        (friday + timedelta(hours=22), friday + timedelta(hours=30)),
        (friday + timedelta(hours=46), friday + timedelta(hours=50)),
    ]


@pytest.mark.parametrize(
    ("zone", "line", "message"),
    [
        ("Europe/Rigga", "Mon 08:00-09:00", "not a time zone"),
        ("../../etc/passwd", "Mon 08:00-09:00", "not a time zone"),
        ("", "Mon 08:00-09:00", "not a time zone"),
        ("UTC", "Monday 08:00-09:00", "does not have the form"),
        ("UTC", "Mon 8-9", "does not have the form"),
        ("UTC", "Mxn 08:00-09:00", "is not a day of the week"),
        ("UTC", "Mon 08:00-24:01", "is not a time of day"),
        ("UTC", "Mon 08:60-09:00", "is not a time of day"),
        ("UTC", "Mon 08:00-08:00", "at a different time"),
    ],
)
def test_invalid_opening_hours_are_refused(zone: str, line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_hours(zone, [line])
