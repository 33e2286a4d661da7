"""Tests of the lines of the connectivity record in a report, and of their parsers with any text."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.wire.payloads.history import CAUSES, Event, Hour, Incident
from agent.wire.payloads.history_lines import (
    EVENT_KINDS,
    CauseTotal,
    HourRow,
    event_line,
    hour_line,
    incident_line,
    parse_event,
    parse_hour,
    parse_incident,
    parse_total,
    total_line,
)

PARSERS = (parse_incident, parse_event, parse_hour, parse_total)
TIMES = st.integers(946_684_800, 4_000_000_000).map(lambda s: datetime.fromtimestamp(s, UTC))
ZONES = st.integers(-56, 56).map(lambda quarters: timezone(timedelta(minutes=15 * quarters)))


@pytest.mark.parametrize(
    ("incident", "line"),
    [
        (
            Incident(
                "provider-down",
                datetime(2026, 11, 22, 18, 2, 11, tzinfo=UTC),
                datetime(2026, 11, 22, 18, 3, 46, tzinfo=UTC),
                95.0,
                "no answer from 9.9.9.9",
            ),
            "2026-11-22T18:02:11Z/2026-11-22T18:03:46Z provider-down 95 s: no answer from 9.9.9.9",
        ),
        (
            Incident(
                "link-down",
                datetime(2026, 11, 22, 18, 2, 11, tzinfo=UTC),
                None,
                20.0,
                "wlan0 has no link",
                3,
            ),
            "2026-11-22T18:02:11Z/.. link-down 20 s x3: wlan0 has no link",
        ),
    ],
    ids=["ended", "open-with-count"],
)
def test_an_incident_is_written_as_a_line_and_parsed(incident: Incident, line: str) -> None:
    assert incident_line(incident) == line
    assert parse_incident(line) == incident


def test_an_hour_is_written_as_a_line_and_parsed() -> None:
    zone = timezone(timedelta(hours=1))
    hour = Hour(datetime(2026, 11, 22, 19, tzinfo=zone), 60, 2, 45, 180, -78, 12)
    line = (
        "2026-11-22T19+01:00: link-down 95 s, provider-down 5 s, 60 heartbeats, 2 failed,"
        " 45/180 ms, -78 dBm, 12 link errors"
    )
    row = HourRow(hour, (("link-down", 95), ("provider-down", 5)))
    assert hour_line(row) == line
    assert parse_hour(line) == row


INCIDENTS = st.builds(
    lambda began_at, length, **more: Incident(
        began_at=began_at, ended_at=length and began_at + length, **more
    ),
    began_at=TIMES,
    length=st.none() | st.integers(1, 10**7).map(lambda s: timedelta(seconds=s)),
    cause=st.sampled_from(CAUSES),
    downtime_s=st.integers(0, 10**8).map(float),
    evidence=st.text(),
    count=st.integers(1, 10**5),
)


@given(INCIDENTS)
def test_each_incident_can_be_restored_from_its_line(incident: Incident) -> None:
    assert parse_incident(incident_line(incident)) == incident


@given(TIMES, ZONES, st.integers(0, 9999), st.integers(1, 3600), st.none() | st.integers(-99, 0))
def test_each_hour_can_be_restored_from_its_line(
    at: datetime, zone: timezone, heartbeats: int, seconds: int, signal_dbm: int | None
) -> None:
    start = at.replace(minute=0, second=0).astimezone(zone)
    row = HourRow(
        Hour(start, heartbeats, round_trip_p95_ms=7, signal_dbm=signal_dbm),
        (("link-down", seconds),),
    )
    assert parse_hour(hour_line(row)) == row


@given(TIMES, st.sampled_from(EVENT_KINDS), st.text())
def test_each_event_can_be_restored_from_its_line(at: datetime, kind: str, detail: str) -> None:
    event = Event(kind, at, detail)  # type: ignore[arg-type]
    assert parse_event(event_line(event)) == event


def test_a_total_can_be_restored_from_its_line() -> None:
    total = CauseTotal("provider-down", 2, 660)
    assert total_line(total) == "provider-down 660 s x2"
    assert parse_total(total_line(total)) == total


@pytest.mark.parametrize(
    "line",
    [
        "",
        "provider-down",
        "2026-13-41T18:02:11Z/.. provider-down 95 s: x",
        "2026-11-22T18:02:11Z/2026-11-22T18:02:10Z provider-down 95 s: ends before its begin",
        "2026-11-22T18:02:11Z/.. meteorite 95 s: an unknown cause",
        "2026-11-22T18:02:11Z/.. provider-down ٩٥ s: digits that are not ASCII",
        "2026-11-22T18:02:11Z meteorite: an unknown kind",
        "2026-11-22T19+01:00: 60 heartbeats, 2 horses",
        "2026-11-22T19+01:00: meteorite 95 s",
        "2026-11-22T19+99:00: 60 heartbeats",
        "0001-01-01T00+14:00: 60 heartbeats",
        "provider-down 660 s",
        "meteorite 660 s x2",
    ],
)
def test_malformed_line_is_not_parsed(line: str) -> None:
    assert [parse(line) for parse in PARSERS] == [None] * len(PARSERS)


@given(st.text() | st.from_regex(r"\d{4}-\d\d-\d\dT\d\d[:+Z0-9]{0,12}: [a-z0-9, -]{0,40}"))
def test_parsers_accept_any_text(line: str) -> None:
    for parse in PARSERS:
        parse(line)
