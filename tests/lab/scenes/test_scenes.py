"""Tests every scene of table.py with the real agent, a real cupsd and simulated devices."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab.scenes.table import LAN, SCENES, Part, acts
from tests.lab.scenes.venue import CHECK_RESULT, play

pytestmark = [
    pytest.mark.lab,
    pytest.mark.needs("tap"),
    pytest.mark.needs("peers"),
]

Report = dict[str, Any]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("venue")


@pytest.fixture(scope="module")
def reports(directory: Path) -> list[Report]:
    """Return the report of all faults, and the report after all fixes."""
    return play(acts(SCENES), LAN, directory)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.title)
def test_report_names_the_cause(scene: Any, reports: list[Report]) -> None:
    check_verdicts(scene.trouble, reports[0])


@pytest.mark.parametrize("scene", [s for s in SCENES if s.fixed.verdicts], ids=lambda s: s.title)
def test_report_has_the_expected_results_after_the_fix(scene: Any, reports: list[Report]) -> None:
    check_verdicts(scene.fixed, reports[1])


def test_check_of_the_printers_agrees_with_the_report(
    reports: list[Report], directory: Path
) -> None:
    """`venue-agent printers` contacts only the printers, but has the same results as the report."""
    states = json.loads((directory / CHECK_RESULT).read_text())["states"]
    checked_states = {state["id"]: (state["status"], state["matchedEndpoint"]) for state in states}
    assert checked_states == {
        printer["id"]: (printer["status"], printer["matchedEndpoint"])
        for printer in reports[0]["printers"]
    }


def test_reports_have_no_failures(reports: list[Report]) -> None:
    for report in reports:
        assert report["failures"] == []
        assert report["completeness"] == "limited"  # an address is excluded


def check_verdicts(part: Part, report: Report) -> None:
    printers = {printer["id"]: printer for printer in report["printers"]}
    for name, verdict in part.verdicts.items():
        queue = printers.get(f"cups:{name}") or printers[name]
        actual = (queue["status"], queue["matchedEndpoint"], queue["transport"])
        assert actual == (verdict.status, verdict.endpoint, verdict.transport), queue
        for words in verdict.includes:
            assert words in queue["reason"], queue
        for words in verdict.excludes:
            assert words not in queue["reason"], queue
