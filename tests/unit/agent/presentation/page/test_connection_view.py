"""Tests of the connectivity record on a page and a terminal."""

import io
import re
from datetime import timedelta

from rich.console import Console

from agent.presentation.connectivity.view import connection_view, hour_tooltip
from agent.presentation.page.html import report_page
from agent.presentation.terminal.report import report_view
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.history import PATH_CAUSES, History, Hour
from agent.wire.payloads.history_lines import incident_line
from tests.fixtures.healthy import healthy
from tests.fixtures.payloads import HOSTILE_STRINGS
from tests.paths import ROOT
from tests.unit.agent.histories import (
    NOW,
    SINCE,
    bad_venue,
    good_venue,
    hours,
    incident,
    unfinished,
)
from tests.unit.agent.presentation.findings.changed_report import Changes, report_with, with_record

CSS = (ROOT / "agent/presentation/page/templates/report.css").read_text()


def section_of(payload: ApplicationPayload) -> str:
    """Return the section of the page that shows the record."""
    page = report_page(payload)
    assert "<h2>Connection</h2>" in page
    return page.partition("<h2>Connection</h2>")[2].partition("</section>")[0]


def text_of(payload: ApplicationPayload) -> str:
    stream = io.StringIO()
    Console(file=stream, width=80).print(report_view(payload))
    return stream.getvalue()


def test_hours_of_a_bad_venue_are_drawn_by_cause() -> None:
    section = section_of(with_record(bad_venue()))
    assert section.count("cause-link-down") == 4 + 1  # four hours and the legend
    assert section.count("cause-gateway-silent") == 2 + 1  # two hours and the legend
    assert "18 interruptions in 7 days, 1 h 48 min in total." in section
    assert "no link: 15 times, 7 min 6 s" in section
    assert (
        "Sun 22 Nov 18:00: no link 2 min 53 s; 60 heartbeats, 4 failed, round trip 244 ms"
        in section
    )


def test_drawings_have_a_text_alternative() -> None:
    section = section_of(with_record(bad_venue()))
    labels = re.findall(r'role="img" aria-label="([^"]+)"', section)
    assert labels[0] == (
        "169 hours by cause of interruption: 4 with no link, 2 with router, 2 with internet"
        " provider, 161 without interruption"
    )
    assert labels[1].startswith("Round-trip time of heartbeats. 95th percentile of each hour:")
    assert labels[2].startswith("Wi-Fi signal. Weakest of each hour: mostly -77 dBm")


def test_a_good_venue_has_no_legend_entry_and_no_signal() -> None:
    view = connection_view(with_record(good_venue()))
    assert view is not None
    assert (view.summary, view.legend) == ("No interruptions in 7 days.", ())
    assert [chart.title for chart in view.charts] == ["Round-trip time of heartbeats"]


def test_the_lines_of_the_record_are_not_listed_as_facts() -> None:
    payload = with_record(bad_venue())
    for output in (report_page(payload), text_of(payload)):
        assert "60 heartbeats, 38/240 ms" not in output
        assert "Downtime in 7 days" in output


def test_a_terminal_lists_the_newest_entries() -> None:
    text = text_of(with_record(bad_venue()))
    assert "18 interruptions in 7 days" in text
    assert "21 Nov 21:17  The machine lost power" in text
    assert "and 3 earlier" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_report_without_a_record_has_no_section() -> None:
    assert connection_view(healthy("linux-till")) is None
    assert "<h2>Connection</h2>" not in report_page(healthy("linux-till"))


def test_each_cause_of_an_interruption_has_a_colour() -> None:
    assert {f"cause-{cause}" for cause in PATH_CAUSES} <= set(re.findall(r"\.(cause-[\w-]+)", CSS))


def test_an_unfinished_incident_is_bad_and_the_summary_names_the_start_of_a_young_record() -> None:
    begin = NOW - timedelta(hours=5)
    open_incident = unfinished(incident("provider-down", NOW - timedelta(minutes=40), 60))
    view = connection_view(with_record(History(begin, (open_incident,), hours=hours(days=1))))
    assert view is not None
    assert view.summary == "1 interruption since 22 Nov 16:30, 40 min in total."
    assert (view.entries[0].severity, view.entries[0].duration) == ("bad", "40 min…")


def test_a_missing_hour_interrupts_the_line_and_a_peak_is_cut() -> None:
    recorded_hours = [hour for hour in hours() if hour.at.hour != 3]
    slow_hour = Hour(at=recorded_hours[5].at, heartbeats=60, round_trip_p95_ms=20_000.0)
    view = connection_view(
        with_record(History(SINCE, hours=(*recorded_hours[:5], slow_hour, *recorded_hours[6:])))
    )
    assert view is not None
    (chart,) = view.charts
    assert chart.path.count("M") == 8
    assert "at most 20 s" in chart.description
    assert chart.description.endswith("Higher values are cut.")


def test_the_days_of_a_machine_that_is_off_at_night_have_labels() -> None:
    day_hours = tuple(hour for hour in hours() if 8 <= hour.at.hour < 20)
    all_days, days = (
        view.charts[0].midnights
        for recorded_hours in (hours(), day_hours)
        if (view := connection_view(with_record(History(SINCE, hours=recorded_hours)))) is not None
    )
    assert [label for _, label in all_days] == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    assert [label for _, label in days] == ["Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


def test_times_are_in_utc_if_the_record_has_no_hours() -> None:
    view = connection_view(with_record(bad_venue(), {"history.hours": ()}))
    assert view is not None
    assert (view.days, view.charts, view.zone) == ((), (), "UTC")
    assert view.entries[0].when == "22 Nov 19:10"


def test_hours_have_tooltips() -> None:
    view = connection_view(with_record(good_venue()))
    assert view is not None
    first = view.days[0]
    assert hour_tooltip(first, first.hours[0]) == "Sun 15 Nov 00:00: not recorded"
    assert (
        hour_tooltip(first, first.hours[21]) == "Sun 15 Nov 21:00: 60 heartbeats, round trip 240 ms"
    )


def test_the_newest_incidents_of_a_long_list_are_kept() -> None:
    lines = tuple(
        incident_line(incident("link-down", NOW - timedelta(hours=n), 60)) for n in range(1, 50)
    )
    view = connection_view(with_record(bad_venue(), {"history.recent": lines}))
    assert view is not None
    assert view.entries[0].when == "22 Nov 20:30"


def test_untrusted_lines_are_plain_and_the_drawing_is_small() -> None:
    far = tuple(f"{year}-01-01T00+00:00: 1 heartbeats" for year in range(1900, 2900))
    lines = tuple(
        f"2026-11-22T18:02:11Z/.. link-down 9 s: {text}"[:1024] for text in HOSTILE_STRINGS
    )
    untrusted: Changes = {
        "history.since": "0001-01-01T00:00:00+14:00",
        "history.hours": (*far, "9999-12-31T23-12:00: 5/7 ms"),
        "history.recent": lines,
        "history.events": ("0001-01-01T00:00:00Z power-lost: <b>",),
        "history.incidents7d": 10**17,
        "history.downtimeSeconds7d": -1,
    }
    payload = report_with(untrusted)
    section = section_of(payload)
    assert "<script>" not in section
    assert "<b>" not in section
    assert section.count("<title>") <= 24 * 9  # one tooltip for each hour of at most nine days
    assert "\x1b" not in text_of(payload)
