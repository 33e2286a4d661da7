"""Tests of the timeline of 30 days: online, offline, closed and unknown time."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from controlplane.devices.locations.opening_hours import read_hours
from controlplane.devices.locations.status import ALWAYS_OPEN, Maintenance, Schedule
from controlplane.devices.timeline.timeline import DAYS, Liveness, Timeline, build_timeline

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
BEFORE_TIMELINE = NOW - 90 * DAY


def liveness(
    *offline: tuple[datetime, datetime | None],
    outages: tuple[tuple[datetime, datetime], ...] = (),
    since: datetime = BEFORE_TIMELINE,
) -> Liveness:
    return Liveness(since, NOW, offline, outages)


def timeline(history: Liveness, schedule: Schedule = ALWAYS_OPEN, zone: str = "UTC") -> Timeline:
    result = build_timeline(history, schedule, zone, NOW)
    assert len(result.days) == DAYS
    return result


def test_the_line_of_a_timeline_has_a_character_for_each_day() -> None:
    midnight = NOW - 12 * HOUR
    history = liveness(
        (midnight - 3 * DAY, midnight - 2 * DAY), (NOW - HOUR, None), since=midnight - 5 * DAY
    )
    # " ": unknown, "█": online, "_": offline, "▄": partly online
    assert timeline(history).line == " " * 24 + "██_██▄"


def test_closed_and_maintenance_time_is_not_counted_as_offline_time() -> None:
    midnight = NOW - 12 * HOUR
    history = liveness((midnight - DAY, midnight))
    schedule = Schedule(
        read_hours("UTC", ["Mon-Sun 08:00-20:00"]),
        (Maintenance(None, midnight - 16 * HOUR, midnight - 12 * HOUR),),
    )
    day = timeline(history, schedule).days[-2]
    assert (day.online_s, day.offline_s, day.closed_s) == (0, 8 * 3600, 16 * 3600)


def test_the_time_of_a_service_outage_is_unknown() -> None:
    history = liveness((NOW - 4 * HOUR, NOW - HOUR), outages=((NOW - 3 * HOUR, NOW - 2 * HOUR),))
    day = timeline(history).days[-1]
    assert (day.online_s, day.offline_s) == (9 * 3600, 2 * 3600)
    assert [hour.state for hour in day.hours[8:13]] == [
        "offline", "unknown", "offline", "online", "unknown",
    ]  # fmt: skip


def test_days_have_the_length_of_local_days() -> None:
    now = datetime(2026, 10, 30, tzinfo=UTC)
    timeline_of_device = build_timeline(
        Liveness(BEFORE_TIMELINE, now, (), ()), ALWAYS_OPEN, "Europe/Riga", now
    )
    lengths = {day.date: len(day.hours) for day in timeline_of_device.days}
    assert lengths["2026-10-25"] == 25
    assert set(lengths.values()) == {24, 25}


timestamps = st.integers(-40 * 24 * 60, 0).map(lambda minutes: NOW + timedelta(minutes=minutes))
spans = st.lists(
    st.tuples(timestamps, timestamps).map(lambda pair: (min(pair), max(pair))), max_size=6
)


@given(spans, spans, timestamps, st.sampled_from(["UTC", "Europe/Riga", "Asia/Kolkata"]))
def test_every_second_is_counted_once(
    offline: list[tuple[datetime, datetime]],
    outages: list[tuple[datetime, datetime]],
    since: datetime,
    zone: str,
) -> None:
    history = Liveness(since, NOW, tuple(offline), tuple(sorted(outages)))
    schedule = Schedule(read_hours(zone, ["Mon-Fri 08:00-22:00"]))
    days = timeline(history, schedule, zone).days
    for day in days:
        of_hours = [(hour.online_s, hour.offline_s, hour.closed_s) for hour in day.hours]
        total = tuple(sum(column) for column in zip(*of_hours, strict=True))
        assert total == (day.online_s, day.offline_s, day.closed_s)
    midnight = datetime.combine(date.fromisoformat(days[0].date), time(), ZoneInfo(zone))
    # This time is in UTC, because adding minutes to a local time ignores changes of the clock.
    begins = max(since, midnight).astimezone(UTC)
    minutes = int((NOW - begins).total_seconds() // 60)
    online_minutes = sum(
        not any(start <= at < end for start, end in (*offline, *outages))
        for at in (begins + timedelta(minutes=minute) for minute in range(minutes))
    )
    assert sum(day.online_s for day in days) == online_minutes * 60
    assert days[-1].date == NOW.astimezone(ZoneInfo(zone)).date().isoformat()
