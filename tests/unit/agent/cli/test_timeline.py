"""Tests of `venue-agent timeline`: width, documented JSON, messages if there is no record."""

import io
import json
import re
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from agent.adapters.storage.state import StateDirectory
from agent.cli.main import main
from agent.cli.terminal.screen import Screen
from agent.cli.terminal.timeline_view import LISTED_MAX, show_timeline
from agent.cli.timeline import JUST_STARTED, NO_RECORD, RECORDER_OFF
from agent.wire.payloads.history import Event, History
from tests.paths import ROOT
from tests.unit.agent.cli.running_state import running_daemon, write_config
from tests.unit.agent.histories import (
    NOW,
    SINCE,
    bad_venue,
    good_venue,
    hours,
    incident,
    store,
    unfinished,
)

PRAGUE = ZoneInfo("Europe/Prague")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path)


def render(history: History, width: int = 80, *, is_running: bool = True) -> str:
    stream = io.StringIO()
    show_timeline(Screen(stream, width), history, NOW, is_running=is_running, zone=PRAGUE)
    return stream.getvalue()


def test_days_have_a_letter_for_each_hour_and_a_legend() -> None:
    lines = render(bad_venue()).splitlines()
    assert lines[0] == "18 interruptions since 2 Nov 09:15, 1 h 48 min in total."
    assert lines[2].split() == ["0", "3", "6", "9", "12", "15", "18", "21"]
    (sunday,) = (line for line in lines if line.startswith("Sun 22 Nov"))
    assert sunday == "Sun 22 Nov  " + ". " * 18 + "L L L .       5 min 31 s"
    assert sunday.index("L") == lines[2].index("18")
    assert "L no link · R router · P internet provider · dot: works · blank: not recorded" in lines


def test_incidents_and_events_are_listed_newest_first_in_local_time() -> None:
    text = render(bad_venue())
    rows = re.findall(r"^(\d+ \w+ \d\d:\d\d)  (.*)$", text, re.MULTILINE)
    assert [when for when, _ in rows[:5]] == [
        "22 Nov 20:10", "22 Nov 20:02", "22 Nov 18:06", "22 Nov 18:02", "21 Nov 21:17",
    ]  # fmt: skip
    assert rows[4][1].strip() == "The machine lost power"
    assert "had no link 12 times until 19:37: wlan0 has no link" in " ".join(text.split())


def test_a_good_venue_has_no_interruptions() -> None:
    assert render(good_venue()).startswith("No interruptions since 2 Nov 09:15.\n")


def test_an_incident_that_still_lasts_comes_first() -> None:
    open_incident = unfinished(incident("provider-down", NOW - timedelta(minutes=40), 60))
    text = render(History(SINCE, (open_incident,), hours=hours()))
    assert text.startswith("No connection since 20:50: the gateway 192.168.1.1 answers, no answer")
    assert "40 min…" in text


def test_local_faults_are_listed_and_are_no_interruptions() -> None:
    stopped = incident("queue-stopped", NOW - timedelta(minutes=70), 600, "bar: stopped (paused)")
    open_incident = unfinished(
        incident("device-absent", NOW - timedelta(minutes=40), 60, "card: no answer")
    )
    text = render(History(SINCE, (stopped, open_incident), hours=hours()))
    assert text.startswith(
        "Ongoing since 20:50: A watched device was gone: card: no answer\nNo interruptions since"
    )
    assert "22 Nov 20:50  40 min…   A watched device was gone: card: no answer" in text
    assert "22 Nov 20:20  10 min    A print queue stopped: bar: stopped (paused)" in text
    assert "Sun 22 Nov  " + ". " * 22 in text


def test_a_stopped_agent_and_a_short_interruption_are_visible() -> None:
    short = incident("gateway-silent", NOW - timedelta(hours=2), 9)
    text = render(History(SINCE, (short,), hours=hours()), is_running=False)
    assert "The daemon does not run: nothing is recorded now." in text
    assert ". r . ." in text
    assert "small letter: less than 1 min" in text


@pytest.mark.parametrize("width", [50, 80, 100])
def test_lines_fit_the_terminal(width: int) -> None:
    many = tuple(Event("address-changed", NOW - timedelta(minutes=n), "x" * 90) for n in range(60))
    for history in (bad_venue(), good_venue(), History(SINCE, events=many)):
        assert max(map(len, render(history, width).splitlines())) <= width
    assert f"there are {60 - LISTED_MAX} older rows" in render(History(SINCE, events=many))


def test_untrusted_texts_are_printed_without_control_characters() -> None:
    text = render(History(SINCE, (incident("link-down", NOW, 5, "\x1b[31mred\u202e"),)))
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_the_verb_reads_the_record_of_the_daemon(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_daemon(config.parent) as state:
        store(state, bad_venue())
        assert main(["timeline", "--config", str(config)]) == 0
        assert capsys.readouterr().out.startswith("18 interruptions since ")
        assert main(["timeline", "--hours", "24", "--config", str(config)]) == 0
        assert capsys.readouterr().out.startswith("14 interruptions since ")


def test_json_has_the_documented_keys(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = store(StateDirectory(config.parent / "state"), bad_venue())
    assert main(["timeline", "--json", "--days", "30", "--config", str(config)]) == 0
    document = json.loads(capsys.readouterr().out)
    section = (ROOT / "docs/cli.md").read_text().partition("\n## timeline\n")[2]
    section = section.partition("\n## ")[0]
    rows = (
        rows_of_kind[0]
        for rows_of_kind in (document["incidents"], document["events"], document["hours"])
    )
    for key in {*document, *(key for row in rows for key in row)}:
        assert re.search(rf"[`.]{key}`", section), key
    assert document["recorder_enabled"] is True
    assert document["since"] == stored.since.isoformat(timespec="seconds")
    assert [stored_incident["count"] for stored_incident in document["incidents"]] == [
        1,
        1,
        1,
        1,
        12,
        1,
        1,
    ]
    assert document["incidents"][0]["cause"] == "gateway-silent"
    downtimes = (hour["downtime_s"].get("gateway-silent", 0) for hour in document["hours"])
    assert sum(downtimes) == 5400


def test_without_a_record_the_verb_explains_why(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["timeline", "--config", str(config)]
    assert main(command) == 0
    assert capsys.readouterr().out == f"{NO_RECORD}\n"
    with running_daemon(config.parent):
        assert main(command) == 0
    assert capsys.readouterr().out == f"{JUST_STARTED}\n"
    config.write_text(config.read_text() + "[recorder]\nenabled = false\n")
    assert main(command) == 0
    assert " ".join(capsys.readouterr().out.split()) == RECORDER_OFF
    assert main([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["since"], document["recorder_enabled"]) == (None, False)


@pytest.mark.parametrize(
    "words", [["--days", "0"], ["--days", "91"], ["--hours", "x"], ["--days", "1", "--hours", "1"]]
)
def test_invalid_periods_exit_with_2(words: list[str], config: Path) -> None:
    with pytest.raises(SystemExit) as error:
        main(["timeline", *words, "--config", str(config)])
    assert error.value.code == 2


@pytest.mark.parametrize(("is_running", "end"), [(True, ". .     "), (False, ".       ")])
def test_the_current_hour_is_blank_unless_the_agent_runs(is_running: bool, end: str) -> None:
    history = History(SINCE, hours=hours()[:-1])
    lines = render(history, is_running=is_running).splitlines()
    (sunday,) = (line for line in lines if line.startswith("Sun 22 Nov"))
    assert sunday.endswith(end)
