"""Tests that only new incidents are changes of the connectivity record."""

from dataclasses import replace
from datetime import timedelta

import pytest

from agent.presentation.changes.changes import changes_between
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.history import History
from tests.unit.agent.histories import NOW, bad_venue, good_venue, incident, shifted
from tests.unit.agent.presentation.findings.changed_report import with_record

DAY = timedelta(days=1)


def report(history: History, age: timedelta = timedelta()) -> ApplicationPayload:
    """Return a report that is ``age`` old and contains the record ``history``."""
    uptime_s = int((30 * DAY - age).total_seconds())
    payload = with_record(history, {"agent.uptimeSeconds": uptime_s})
    collected_at = (NOW - age).isoformat()
    snapshot = payload.snapshot.model_copy(update={"collected_at": collected_at})
    return payload.model_copy(update={"snapshot": snapshot})


def sentences(before: ApplicationPayload, after: ApplicationPayload) -> list[tuple[str, str]]:
    """Return the severity and the sentence of each change."""
    return [(change.severity, change.sentence) for change in changes_between(before, after).changes]


@pytest.mark.parametrize("history", [good_venue(), bad_venue()], ids=["good", "bad"])
def test_changed_figures_of_the_record_are_not_reported(history: History) -> None:
    later = shifted(history, timedelta(hours=1))
    later_figures = replace(later, incidents=history.incidents, events=history.events)
    assert sentences(report(history), report(later_figures)) == []


def test_new_incidents_with_the_same_cause_are_one_change() -> None:
    outages = (
        incident("link-down", NOW - 2 * DAY, 20, "enp1s0 has no link"),
        incident("provider-down", NOW - timedelta(hours=5), 40),
        incident("provider-down", NOW - timedelta(hours=2), 45),
        incident("link-down", NOW - timedelta(hours=1), 15, "enp1s0 has no link"),
    )
    history = replace(good_venue(), incidents=outages)
    assert sentences(report(good_venue(), DAY), report(history)) == [
        ("muted", "The network cable or Wi-Fi had no link once, 15 s in total."),
        ("muted", "The internet provider was down twice, 1 min 25 s in total."),
    ]
    assert sentences(report(history), report(good_venue(), DAY)) == []


def test_a_long_outage_is_a_warning_and_a_new_finding() -> None:
    outage = incident("provider-down", NOW - timedelta(hours=5), 660)
    changes = sentences(
        report(good_venue(), DAY), report(replace(good_venue(), incidents=(outage,)))
    )
    assert ("warn", "The internet provider was down once, 11 min in total.") in changes
    assert sum(sentence.startswith("New: ") for _, sentence in changes) == 1
    assert len(changes) == 2
