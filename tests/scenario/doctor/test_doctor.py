"""Tests that doctor names the cause of each real fault, and only the cause.

`make test` runs the situations of `ALWAYS`. It also runs one situation for every fourth check that
can be a cause.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from tests import sizes
from tests.lab.namespaces import entering_all
from tests.scenario.doctor.situations import SITUATIONS

pytestmark = [
    pytest.mark.lab,
    pytest.mark.needs("all-namespaces", "veth"),
]


HANGING_SITUATIONS = ("a_silent_dns_server", "packets_that_vanish")
ALWAYS = {"a_real_agent_runs", "the_reference_service", "through_a_proxy", *HANGING_SITUATIONS}
FIRST_OF_EACH_CAUSE = {SITUATIONS[name].cause: name for name in reversed(SITUATIONS)}
MEDIUM = {*ALWAYS, *list(FIRST_OF_EACH_CAUSE.values())[::4]}
CASES = sizes.large_except(MEDIUM, SITUATIONS)


@pytest.fixture(scope="module")
def answers(
    selected_parameters: list[dict[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Any]:
    """Doctor's output in each of the selected situations and in the situations of `ALWAYS`."""
    names = list(
        dict.fromkeys((*ALWAYS, *(parameters["name"] for parameters in selected_parameters)))
    )
    home = tmp_path_factory.mktemp("doctor")
    command = [*entering_all(), sys.executable, "-m", "tests.scenario.doctor.machine", str(home)]
    environment = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    result = subprocess.run(
        [*command, *names], capture_output=True, text=True, timeout=1200, check=False,
        env=environment,
    )  # fmt: skip
    lines = result.stdout.splitlines()
    assert len(lines) == len(names), result.stderr
    return dict(zip(names, (json.loads(line) for line in lines), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_doctor_names_the_cause_and_nothing_else(name: str, answers: Mapping[str, Any]) -> None:
    situation, answer = SITUATIONS[name], answers[name]
    assert "error" not in answer, answer["error"]
    outcomes = {o["name"]: o for o in answer["outcomes"]}
    problems = {n: o["status"] for n, o in outcomes.items() if o["status"] in {"warn", "fail"}}
    expected = {} if situation.cause is None else {situation.cause: situation.status}
    assert problems == expected, {n: outcomes[n]["detail"] for n in {*problems, *expected}}
    if situation.cause is not None:
        outcome = outcomes[situation.cause]
        assert situation.detail in outcome["detail"]
        assert situation.fix in outcome["fix"]
        assert outcome["fix"], "every finding must have a fix"


@pytest.mark.parametrize("name", CASES)
def test_dependent_checks_name_only_the_cause(name: str, answers: Mapping[str, Any]) -> None:
    causes = {o["because"] for o in answers[name]["outcomes"]} - {None}
    cause = SITUATIONS[name].cause
    assert causes <= {cause}


def test_healthy_agent_skips_only_checks_that_do_not_apply(answers: Mapping[str, Any]) -> None:
    skipped = {
        o["name"] for o in answers["a_real_agent_runs"]["outcomes"] if o["status"] == "skipped"
    }
    assert skipped == {
        "printers", "proxy", "certificate", "local-network", "print-system", "kiosk",
    }  # fmt: skip


def test_hanging_check_times_out(answers: Mapping[str, Any]) -> None:
    for name in HANGING_SITUATIONS:
        details = [outcome["detail"] for outcome in answers[name]["outcomes"] if outcome["detail"]]
        assert any(re.search("no result after|no answer in time", detail) for detail in details)


def test_output_does_not_contain_the_password_of_the_proxy(answers: Mapping[str, Any]) -> None:
    assert "secret" not in json.dumps(answers["through_a_proxy"])


def test_at_least_25_situations_have_a_finding() -> None:
    assert len([s for s in SITUATIONS.values() if s.cause is not None]) >= 25


def test_network_of_the_situations_has_only_loopback_at_first() -> None:
    result = subprocess.run([*entering_all(), "ip", "-o", "link"], capture_output=True, check=True)
    assert result.stdout.count(b"\n") == 1, "the only interface must be loopback"
