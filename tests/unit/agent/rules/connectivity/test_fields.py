"""Tests of the snapshot's fields that contain the connectivity record."""

import re
from dataclasses import replace
from datetime import timedelta
from zoneinfo import ZoneInfo

from agent.rules.connectivity.fields import LINES_MAX, history_fields, missing_history_fields
from agent.rules.connectivity.figures import hour_rows
from agent.rules.reports.sealing import shrink
from agent.wire.payloads.application import SnapshotField
from agent.wire.payloads.history import History, Incident
from agent.wire.payloads.history_lines import parse_event, parse_hour, parse_incident
from collectors.contract import FieldValue
from tests.fixtures.payloads import application_snapshot
from tests.paths import ROOT
from tests.unit.agent.histories import NOW, SINCE, bad_venue, good_venue, incident, unfinished

PRAGUE = ZoneInfo("Europe/Prague")
HOUR = timedelta(hours=1)


def values(history: History) -> dict[str, FieldValue | None]:
    return {field.key: field.value for field in history_fields(history, NOW, PRAGUE)}


def texts(history: History, key: str) -> tuple[str, ...]:
    value = values(history)[key]
    assert isinstance(value, tuple)
    return value


def test_fields_contain_the_figures_of_a_bad_venue() -> None:
    fields_by_key = values(bad_venue())
    assert fields_by_key["history.since"] == "2026-11-02T08:15:00+00:00"
    assert (fields_by_key["history.incidents24h"], fields_by_key["history.downtimeSeconds24h"]) == (
        14,
        331,
    )
    assert (fields_by_key["history.incidents7d"], fields_by_key["history.downtimeSeconds7d"]) == (
        18,
        6486,
    )
    assert fields_by_key["history.causes7d"] == (
        "gateway-silent 5400 s x1", "provider-down 660 s x2", "link-down 426 s x15",
    )  # fmt: skip
    assert fields_by_key["history.worstHours"] == (
        "18:00: 9 incidents", "19:00: 4 incidents", "20:00: 2 incidents",
    )  # fmt: skip
    assert fields_by_key["history.roundTripP95Ms24h"] == 64.0
    assert fields_by_key["history.signalMinDbm24h"] == -81


def test_a_good_venue_has_no_incidents_and_no_signal() -> None:
    fields_by_key = values(good_venue())
    assert (fields_by_key["history.incidents7d"], fields_by_key["history.downtimeSeconds7d"]) == (
        0,
        0,
    )
    assert fields_by_key["history.causes7d"] == fields_by_key["history.recent"] == ()
    assert fields_by_key["history.signalMinDbm24h"] is None
    assert len(texts(good_venue(), "history.hours")) == 169


def test_lines_are_parsed_and_newest_first() -> None:
    many = [
        incident("link-down", NOW - hours_ago * HOUR, 5, "wlan0 has no link")
        for hours_ago in range(50)
    ]
    lines = texts(History(SINCE, tuple(reversed(many))), "history.recent")
    parsed = [parse_incident(line) for line in lines]
    assert parsed == many[:LINES_MAX]
    events, hours = (texts(bad_venue(), f"history.{name}") for name in ("events", "hours"))
    assert events
    assert all(map(parse_event, events))
    assert hours
    assert all(map(parse_hour, hours))


def test_a_long_text_is_cut_and_still_parsed() -> None:
    lines = texts(History(SINCE, (incident("link-down", NOW, 5, "x\n" * 2000),)), "history.recent")
    assert len(lines[0]) == 1024
    assert parse_incident(lines[0]) is not None


def test_lines_contain_no_secrets() -> None:
    rejected_incident = incident(
        "service-refuses", NOW, 5, "HTTP 401: Bearer abcdef0123456789abcdef is bad"
    )
    (line,) = texts(History(SINCE, (rejected_incident,)), "history.recent")
    assert "abcdef" not in line
    assert parse_incident(line) is not None


def test_downtime_counts_until_now_and_from_the_start_of_the_period() -> None:
    old = incident("provider-down", NOW - 25 * HOUR, 7200)
    open_incident = unfinished(incident("gateway-silent", NOW - HOUR, 60))
    fields_by_key = values(History(SINCE, (old, open_incident)))
    assert (fields_by_key["history.incidents24h"], fields_by_key["history.downtimeSeconds24h"]) == (
        2,
        7200,
    )
    assert fields_by_key["history.downtimeSeconds7d"] == 10800


def test_downtime_of_an_hour_is_by_cause_and_in_local_time() -> None:
    began_at = NOW.replace(minute=50) - 3 * HOUR
    outage = incident("provider-down", began_at, 1200)
    short = incident("link-down", began_at - timedelta(minutes=9), 30)
    rows = hour_rows(History(SINCE, (short, outage)), NOW - 24 * HOUR, NOW, PRAGUE)
    assert [(row.hour.at.hour, row.downtime) for row in rows] == [
        (18, (("provider-down", 600), ("link-down", 30))),
        (19, (("provider-down", 600),)),
    ]


def test_incidents_without_duration_or_with_a_clock_set_back_have_no_downtime() -> None:
    instant = incident("link-down", NOW - HOUR, 0)
    backwards = replace(instant, began_at=NOW - HOUR, ended_at=NOW - 2 * HOUR, count=3)
    for interruption in (instant, backwards):
        assert values(History(SINCE, (interruption,)))["history.downtimeSeconds7d"] == 0


def test_interruptions_after_now_do_not_count() -> None:
    later = Incident("link-down", NOW + HOUR, NOW + 2 * HOUR, 3600.0, "wlan0 has no link")
    assert values(History(SINCE, (later,)))["history.incidents7d"] == 0


def test_keys_are_documented_and_the_same_without_a_record() -> None:
    document = (ROOT / "docs/application-fields.md").read_text()
    documented = set(re.findall(r"`(history\.\w+)`", document))
    assert documented == set(values(bad_venue()))
    missing = list(missing_history_fields("the recorder is off"))
    assert [field.key for field in missing] == list(values(good_venue()))
    assert {(field.status, field.reason) for field in missing} == {
        ("not-applicable", "the recorder is off")
    }


def test_hours_are_the_first_part_that_a_smaller_report_drops() -> None:
    payload = application_snapshot()
    fields = [
        SnapshotField(key=field.key, source=field.source, status=field.status, value=field.value)
        for field in history_fields(bad_venue(), NOW, PRAGUE)
    ]
    snapshot = payload.snapshot.model_copy(update={"fields": (*payload.snapshot.fields, *fields)})
    smaller = shrink(payload.model_copy(update={"snapshot": snapshot}), 1)
    keys = {field.key for field in smaller.snapshot.fields}
    assert "history.recent" in keys
    assert "history.hours" not in keys
    assert "dropped history.hours, " in smaller.limitations[0]
