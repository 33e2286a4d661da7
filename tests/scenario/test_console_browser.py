"""A real Chromium on the console: from the key to a report, and what was never said or shown."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.fakes.console_browser import HOSTILE
from tests.lab import namespaces
from tests.paths import ROOT
from tests.prerequisites import browser

pytestmark = [pytest.mark.slow, pytest.mark.exclusive, pytest.mark.needs("browser")]


@pytest.fixture(scope="module")
def stage() -> dict[str, Any]:
    stage = (sys.executable, "-m", "tests.fakes.console_browser", browser())
    finished = subprocess.run(
        (*namespaces.entering(), *stage), cwd=ROOT, capture_output=True, timeout=120, check=False
    )
    assert finished.returncode == 0, finished.stderr.decode()[-3000:]
    told: dict[str, Any] = json.loads(finished.stdout)
    return told


def test_it_begins_with_what_is_broken(stage: dict[str, Any]) -> None:
    tiles = dict(reversed(tile.split("\n")) for tile in stage["tiles"].split("|"))
    assert tiles["Broken"] == "1"
    assert tiles["Online"] == "3"
    assert "till-bar" in stage["home"]
    assert "Kitchen printer has moved" in stage["home"]
    assert stage["title"] == "Overview · Venue control"


def test_devices_are_listed_by_need_and_found_by_name(stage: dict[str, Any]) -> None:
    assert stage["names"] == ["till-bar", "till-kitchen", HOSTILE]
    assert stage["found"] == ["till-kitchen"]
    assert stage["address"] == "#/devices?search=kitch"


def test_a_request_is_seen_from_asking_to_its_report(stage: dict[str, Any]) -> None:
    assert stage["device title"] == "till-kitchen · Venue control"
    assert stage["asked"] == "Network report queued …"
    assert stage["running"] == "running"
    assert stage["line"].startswith("Kitchen printer has moved")
    assert stage["who"].startswith("asked by rollout")
    assert stage["report"] == "Report of till-kitchen"
    assert stage["report title"] == "till-kitchen, network report · Venue control"


def test_many_are_asked_at_once(stage: dict[str, Any]) -> None:
    assert stage["many"] == "3 devices asked."


def test_a_device_that_is_away_is_asked_when_it_is_back(stage: dict[str, Any]) -> None:
    assert stage["wished"].startswith("waiting")
    assert "A report about the network, when the device is heard, until" in stage["wished"]
    assert "asked by rollout" in stage["wished"]
    assert stage["waiting"].startswith("waiting")
    assert stage["cancelled"] == "cancelled"


def test_thirty_days_are_told_in_words_too(stage: dict[str, Any]) -> None:
    assert stage["days"].startswith("Thirty days: heard ")
    assert ", offline " in stage["days"]
    assert ", closed 14 h 24 min" in stage["days"]


def test_who_is_revoked_is_named(stage: dict[str, Any]) -> None:
    assert stage["revoke"] == "Revoke till-bar?"
    assert stage["revoked"] == "till-bar"


def test_a_key_that_only_reads_is_offered_nothing(stage: dict[str, Any]) -> None:
    assert stage["buttons"] == []


def test_a_spreadsheet_takes_no_text_for_a_formula(stage: dict[str, Any]) -> None:
    _, row = stage["csv"].split("\r\n", 1)
    assert row == (
        "\"'=1+\"\"1\"\"\",\"'@home\",\"linux\",\"\",\"online\",\"2026-11-20T12:00:00Z\","
        "\"\",\"\",\"\",\"\",\"'-1\"\r\n"
    )  # fmt: skip


def test_all_fits_into_both_widths(stage: dict[str, Any]) -> None:
    assert set(stage["layouts"].values()) == {"fits"}
    assert len(stage["layouts"]) == 12


def test_no_script_fails_and_the_policy_holds(stage: dict[str, Any]) -> None:
    assert stage["wrong"] == []
