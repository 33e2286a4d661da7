"""Thirty days as cells: what was heard, what was not, and what nobody can know."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from controlplane.devices.locations.opening_hours import read_hours
from controlplane.devices.locations.status import ALWAYS_OPEN, Maintenance, Place
from controlplane.devices.timeline.timeline import DAYS, Day, Known, line_of, strip

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
OLD = NOW - 90 * DAY


def known(
    *gaps: tuple[datetime, datetime | None],
    breaks: tuple[tuple[datetime, datetime], ...] = (),
    since: datetime = OLD,
) -> Known:
    return Known(since, NOW, gaps, breaks)


def days(of: Known, place: Place = ALWAYS_OPEN, zone: str = "UTC") -> tuple[Day, ...]:
    found = strip(of, place, zone, NOW)
    assert len(found) == DAYS
    return found


def test_a_line_has_a_character_a_day() -> None:
    midnight = NOW - 12 * HOUR
    of = known(
        (midnight - 3 * DAY, midnight - 2 * DAY), (NOW - HOUR, None), since=midnight - 5 * DAY
    )
    assert line_of(days(of)) == " " * 24 + "██_██▄"


def test_closed_and_maintenance_are_told_apart_from_offline() -> None:
    midnight = NOW - 12 * HOUR
    of = known((midnight - DAY, midnight))
    place = Place(
        read_hours("UTC", ["Mon-Sun 08:00-20:00"]),
        (Maintenance(None, midnight - 16 * HOUR, midnight - 12 * HOUR),),
    )
    cell = days(of, place)[-2].cell
    assert (cell.heard_s, cell.offline_s, cell.closed_s) == (0, 8 * 3600, 16 * 3600)


def test_while_the_service_was_down_nothing_is_known() -> None:
    of = known((NOW - 4 * HOUR, NOW - HOUR), breaks=((NOW - 3 * HOUR, NOW - 2 * HOUR),))
    cell = days(of)[-1].cell
    assert (cell.heard_s, cell.offline_s) == (9 * 3600, 2 * 3600)
    assert [hour.state for hour in days(of)[-1].hours[8:13]] == [
        "offline", "unknown", "offline", "heard", "unknown",
    ]  # fmt: skip


def test_days_have_the_hours_of_the_location() -> None:
    now = datetime(2026, 10, 30, tzinfo=UTC)
    found = strip(Known(OLD, now, (), ()), ALWAYS_OPEN, "Europe/Riga", now)
    lengths = {day.date.isoformat(): len(day.hours) for day in found}
    assert lengths["2026-10-25"] == 25
    assert set(lengths.values()) == {24, 25}


moments = st.integers(-40 * 24 * 60, 0).map(lambda minutes: NOW + timedelta(minutes=minutes))
spans = st.lists(st.tuples(moments, moments).map(lambda pair: (min(pair), max(pair))), max_size=6)


@given(spans, spans, moments, st.sampled_from(["UTC", "Europe/Riga", "Asia/Kolkata"]))
def test_every_second_is_counted_once(
    gaps: list[tuple[datetime, datetime]],
    breaks: list[tuple[datetime, datetime]],
    since: datetime,
    zone: str,
) -> None:
    of = Known(since, NOW, tuple(gaps), tuple(sorted(breaks)))
    place = Place(read_hours(zone, ["Mon-Fri 08:00-22:00"]))
    found = days(of, place, zone)
    for day in found:
        of_hours = [(each.heard_s, each.offline_s, each.closed_s) for each in day.hours]
        total = tuple(sum(column) for column in zip(*of_hours, strict=True))
        assert total == (day.cell.heard_s, day.cell.offline_s, day.cell.closed_s)
    begins = max(since, found[0].cell.since)
    minutes = int((NOW - begins).total_seconds() // 60)
    naive_heard = sum(
        not any(start <= at < end for start, end in (*gaps, *breaks))
        for at in (begins + timedelta(minutes=each) for each in range(minutes))
    )
    assert sum(day.cell.heard_s for day in found) == naive_heard * 60
    assert found[-1].date == NOW.astimezone(ZoneInfo(zone)).date()
