"""Tests that each day of a record gets one row of hours, also a day with 23 or 25 hours."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from agent.presentation.connectivity.day_rows import DAYS_MAX, causes_in, day_rows
from agent.presentation.connectivity.titles import CAUSE_TITLES
from agent.rules.connectivity.figures import hour_rows
from agent.wire.payloads.history import CAUSES, Cause, History, Hour
from agent.wire.payloads.history_lines import HourRow, hour_line, parse_hour
from tests.unit.agent.histories import incident

HOUR = timedelta(hours=1)


def letters(begin: datetime, zone: str, *, outage_at: int, length: int = 30) -> list[str]:
    """Record ``length`` hours with one outage of 30 minutes. Return a string for each day, with one
    letter for each hour.
    """
    hours = tuple(Hour(begin + n * HOUR, 60) for n in range(length))
    outage = incident("provider-down", begin + outage_at * HOUR, 1800)
    history = History(begin, (outage,), hours=hours)
    rows = hour_rows(history, begin, begin + length * HOUR, ZoneInfo(zone))
    assert [parse_hour(hour_line(row)) for row in rows] == list(rows)
    return ["".join(hour.letter for hour in day.hours) for day in day_rows(rows)]


def test_an_hour_that_exists_twice_shows_the_longer_downtime() -> None:
    midnight = datetime(2026, 10, 24, 22, tzinfo=UTC)  # clocks are set back at 01:00 UTC
    for at in (2, 3):
        first, _ = letters(midnight, "Europe/Prague", outage_at=at)
        assert first == "..P....................."


def test_an_hour_that_does_not_exist_is_blank() -> None:
    midnight = datetime(2026, 3, 28, 23, tzinfo=UTC)
    first, _ = letters(midnight, "Europe/Prague", outage_at=2)
    assert first == ".. P...................."


def test_hours_of_zones_with_half_hour_offsets_are_local_hours() -> None:
    (day, *_) = letters(datetime(2026, 11, 21, 19, tzinfo=UTC), "Asia/Kolkata", outage_at=3)
    assert day == "...P...................."


def test_days_without_hours_between_two_days_are_blank() -> None:
    begin = datetime(2026, 11, 2, 8, tzinfo=UTC)
    days = day_rows([HourRow(Hour(begin)), HourRow(Hour(begin + timedelta(days=2)))])
    assert [day.title for day in days] == ["Mon 2 Nov", "Tue 3 Nov", "Wed 4 Nov"]
    assert {hour.letter for hour in days[1].hours} == {" "}
    assert day_rows([]) == ()


def test_the_number_of_days_is_limited() -> None:
    rows = [HourRow(Hour(datetime(year, 1, 1, tzinfo=UTC))) for year in (1900, 2900)]
    assert len(day_rows(rows)) == DAYS_MAX


def test_the_cause_with_the_longest_downtime_sets_the_letter_and_letters_are_unique() -> None:
    downtime: tuple[tuple[Cause, int], ...] = (("link-down", 90), ("provider-down", 20))
    (day,) = day_rows([HourRow(Hour(datetime(2026, 11, 2, 8, tzinfo=UTC)), downtime)])
    assert (day.hours[8].letter, day.hours[8].downtime_s) == ("L", 110)
    assert causes_in([day]) == ("link-down",)
    assert len({title.letter for title in CAUSE_TITLES.values()}) == len(CAUSES)
