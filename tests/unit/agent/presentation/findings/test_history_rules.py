"""Tests of the findings about the connectivity record."""

from datetime import timedelta

from agent.presentation.findings.findings import findings_of
from agent.wire.payloads.history import History, Incident
from tests.unit.agent.histories import NOW, SINCE, bad_venue, good_venue, incident
from tests.unit.agent.presentation.findings.changed_report import Changes, report_with, with_record

HOUR = timedelta(hours=1)
WIFI: Changes = {"enp1s0 interface.type": "wifi"}


def findings(history: History, more: Changes | None = None) -> dict[str, str]:
    """Return the first sentence of each finding of a machine with this record."""
    payload = with_record(history, more)
    return {finding.code: finding.sentences[0] for finding in findings_of(payload)}


def test_five_short_interruptions_in_a_day_are_a_finding_but_one_each_night_is_not() -> None:
    nights = tuple(incident("provider-down", NOW - 24 * n * HOUR, 42) for n in range(6, -1, -1))
    assert findings(History(SINCE, nights)) == {}
    today = tuple(incident("provider-down", NOW - n * HOUR, 10) for n in range(10, 0, -2))
    assert findings(History(SINCE, today[1:])) == {}
    assert findings(History(SINCE, today))["provider-outages"].startswith(
        "The internet provider was down 5 times in 24 hours, 50 s in total; "
    )


def test_good_venue_and_single_short_interruption_have_no_finding() -> None:
    assert findings(good_venue()) == {}
    short = incident("provider-down", NOW - HOUR, 40)
    assert findings(History(SINCE, (short,))) == {}


def test_findings_of_a_bad_venue_contain_count_and_duration() -> None:
    sentences = findings(bad_venue())
    assert sentences["provider-outages"] == (
        "The internet provider was down twice in 7 days, 11 min in total; the local network worked."
    )
    assert sentences["power-losses"] == "This machine lost power 3 times in 7 days."
    assert sentences["router-outages"] == (
        "The router stopped answering once in 7 days, 1 h 30 min in total."
    )
    assert sentences["link-lost"] == (
        "The link of wlan0 was lost 14 times in 24 hours, 5 min 31 s in total, mostly 18:00-20:00."
    )


def test_the_finding_of_a_lost_wifi_link_contains_hours_and_signal() -> None:
    incidents = [
        Incident(
            "link-down", NOW - 3 * HOUR, NOW - HOUR, 300.0, "enp1s0 has no link", 14,
        )
    ]  # fmt: skip
    record = History(SINCE, tuple(incidents), hours=bad_venue().hours)
    assert findings(record, WIFI)["wifi-lost"] == (
        "The Wi-Fi link was lost 14 times in 24 hours, 5 min in total, mostly 18:00-20:00;"
        " in the last 24 hours, the signal fell to -81 dBm."
    )


def test_the_period_of_a_young_record_is_its_age() -> None:
    outage = (incident("provider-down", NOW - HOUR, 600),)
    assert " once in 5 h, " in findings(History(NOW - 5 * HOUR, outage))["provider-outages"]
    assert " once in 3 days, " in findings(History(NOW - 50 * HOUR, outage))["provider-outages"]


def test_a_single_address_conflict_is_a_finding() -> None:
    shared = incident("address-conflict", NOW - HOUR, 9, "another machine also uses 192.168.1.20")
    assert findings(History(SINCE, (shared,)))["address-shared"] == (
        "Two machines used one address, once in 7 days: another machine also uses 192.168.1.20."
    )


def test_malformed_lines_are_ignored() -> None:
    malformed: Changes = {
        "history.since": "2026-11-02T08:15:00+00:00",
        "history.causes7d": ("provider-down 99999999999 s x2", "x", "link-down 9 s x"),
        "history.recent": ("<script>", ""),
        "history.hours": ("2026-11-22T19+01:00: provider-down 99999 s, \x1b[31m",),
    }
    assert {finding.code for finding in findings_of(report_with(malformed))} == set()
