"""Tests that a healthy machine has no problem and no warning, and that a broken machine has exactly
the findings of its fault.
"""

from pathlib import Path

import pytest

from agent.presentation.findings.findings import APPLICATION_RULES, NETWORK_RULES
from tests.unit.agent.presentation.findings.machines.compose import Machine, findings
from tests.unit.agent.presentation.findings.machines.table import BROKEN, HEALTHY, BrokenMachine


@pytest.mark.parametrize("machine", HEALTHY, ids=lambda machine: machine.description)
def test_a_healthy_machine_has_no_problem_and_no_warning(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    actual = findings(machine, tmp_path, monkeypatch)
    assert [finding for finding in actual if finding.severity != "muted"] == []


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.machine.description)
def test_a_broken_machine_has_exactly_the_findings_of_its_fault(
    broken: BrokenMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    actual = findings(broken.machine, tmp_path, monkeypatch)
    codes = dict.fromkeys(finding.code for finding in actual if finding.severity != "muted")
    assert set(codes) == set(broken.codes.split()), actual


def test_broken_machines_cover_each_rule_except_printer_moved() -> None:
    codes = {code for case in BROKEN for code in case.codes.split()}
    rules = (*APPLICATION_RULES, *NETWORK_RULES)
    assert {rule.code for rule in rules if rule.severity != "muted"} - codes == {"printer-moved"}


def test_each_table_has_at_least_40_machines() -> None:
    assert min(len(HEALTHY), len(BROKEN)) >= 40
