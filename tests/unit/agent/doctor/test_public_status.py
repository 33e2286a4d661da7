"""Tests of doctor's outcomes for a user who cannot read the agent's state."""

from dataclasses import replace

import pytest

from agent.doctor.check import Check, CheckResult, Outcome, fail, ok, unseen
from agent.doctor.context import Context
from agent.doctor.public_status import UnitFacts, combine_status, describe, is_agent
from agent.doctor.root_causes import all_visible, any_failed
from agent.doctor.runner import run_checks

STOPPED = UnitFacts(manager="systemd", is_installed=True, starts_at_boot=True)
RUNNING = replace(STOPPED, activity="running", pid=7)
UNKNOWN = UnitFacts(manager="systemd", is_installed=False)


@pytest.mark.parametrize(
    ("unit", "processes", "is_running", "expected_text"),
    [
        (RUNNING, (), True, "according to systemd, it runs as process 7"),
        (RUNNING, (8,), True, "according to systemd, it runs as process 7"),
        (STOPPED, (8,), True, "according to the process list, it runs as process 8"),
        (STOPPED, (), False, "according to systemd, it does not run"),
        (STOPPED, None, False, "according to systemd, it does not run"),
        (UNKNOWN, (8, 9), True, "according to the process list, it runs as processes 8 and 9"),
        (UNKNOWN, (), None, "this user can see no process of an agent"),
        (None, None, None, "this user can see no process of an agent"),
    ],
)
def test_a_running_unit_takes_precedence_over_the_process_list(
    unit: UnitFacts | None,
    processes: tuple[int, ...] | None,
    is_running: bool | None,
    expected_text: str,
) -> None:
    status = combine_status(unit, processes)
    assert status.is_running is is_running
    assert describe(status) == expected_text


def check(name: str, outcome: Outcome, *needs: str, uses_public_facts: bool = False) -> Check:
    return Check(name, "the agent", lambda _: outcome, needs, uses_public_facts=uses_public_facts)


def statuses(*checks: Check) -> tuple[dict[str, str], tuple[CheckResult, ...]]:
    """Run checks. Return their statuses by name, and their results."""
    results = run_checks(checks, Context(environment={}))
    return {result.name: result.status for result in results}, results


def test_a_check_is_unseen_if_a_check_it_depends_on_is_unseen() -> None:
    actual, results = statuses(
        check("state", unseen("it is closed")),
        check("journal", ok("whole"), "state"),
        check("rows", ok("many"), "journal"),
        check("disk", ok("roomy"), "state", uses_public_facts=True),
    )
    assert actual == {"state": "unseen", "journal": "unseen", "rows": "unseen", "disk": "ok"}
    assert [result.because for result in results] == [None, "state", "state", None]
    assert not any_failed(results)
    assert not all_visible(results)


def test_a_check_with_a_failed_and_an_unseen_dependency_names_the_failed_one() -> None:
    actual, results = statuses(
        check("daemon", fail("it does not run", "start it")),
        check("state", unseen("it is closed")),
        check("outbox", ok("empty"), "state", "daemon"),
    )
    assert actual["outbox"] == "skipped"
    assert results[2].because == "daemon"


@pytest.mark.parametrize("launcher", ["sudo", "/usr/bin/sudo", "timeout 5", "strace -f"])
def test_a_program_that_started_an_agent_is_not_counted_as_an_agent(launcher: str) -> None:
    words = (*launcher.split(), "venue-agent", "run")
    assert not is_agent(words)
