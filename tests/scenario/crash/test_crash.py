"""Tests that a request ends exactly once if the agent is killed at any of its failpoints.

`make test-all` kills the agent after each failpoint of the scene `PLAIN`, and at the only failpoint
of the scene `LEARNED`, in which the agent remembers printers. `make test` plays fewer of these
cases: it kills the agent at each transaction, at one write of a file in each scene, at one call to
the service and at one event of the child process. `make test-crash` (CRASH_MATRIX=full) runs the
whole matrix.
"""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from agent.adapters.failpoints import Failpoint
from agent.adapters.storage.printer_memory import PrinterMemory
from agent.adapters.storage.state import StateDirectory
from tests import sizes
from tests.fakes.strict_service import StrictService
from tests.scenario.agent_process import write_config
from tests.scenario.crash import matrix_document
from tests.scenario.crash.matrix import (
    LEARNED,
    MAX_COLLECTIONS,
    NEVER,
    NOT_IN_A_REQUEST,
    PLAIN,
    SCENES,
    WITHIN_S,
    Case,
    cases,
    crashing_agent,
    play,
    until_ended,
)

IS_FULL = os.environ.get("CRASH_MATRIX") == "full"


def _cases_to_play() -> list[Case]:
    """Return the cases to play: all of them if the whole matrix is requested.

    Otherwise, the agent dies after each failpoint of the scene `PLAIN`, with alternating kinds of
    reports, and at the only failpoint of the scene `LEARNED`.
    """
    all_cases = cases()
    if IS_FULL:
        return all_cases
    plain = [case for case in all_cases if case.scene is PLAIN and case.plan.endswith("after:1")]
    learned = [case for case in all_cases if case.scene is LEARNED]
    # In `plain`, each failpoint has two consecutive cases, one for each kind of report.
    return [case for i, case in enumerate(plain) if i % 2 == i // 2 % 2] + learned


def _class_of(case: Case) -> tuple[str, str]:
    """Return the scene and the class of a case's failpoint.

    The classes are writes of files, calls, and events of the child. Each transaction is a class of
    its own.
    """
    failpoint = case.plan.partition(":")[0]
    classes = {"written": "file", "called": "call"}
    if failpoint == Failpoint.RECORD_WRITTEN:  # a transaction, although its name is that of a file
        return case.scene.name, failpoint
    first, last = failpoint.split("-")[0], failpoint.split("-")[-1]
    return case.scene.name, first if first == "child" else classes.get(last, failpoint)


def _last_of_each_class(played: list[Case]) -> list[Case]:
    return list({_class_of(case): case for case in played}.values())


def test_every_failpoint_has_a_case_or_a_reason() -> None:
    passed_failpoints = frozenset[Failpoint]().union(
        *(scene.occurrences.keys() for scene in SCENES)
    )
    assert passed_failpoints | NOT_IN_A_REQUEST.keys() == set(Failpoint)


def test_the_matrix_has_at_least_60_points_and_a_case_for_each_kind() -> None:
    points = {(case.scene.name, case.plan): len(case.scene.kinds) for case in cases()}
    assert len(points) >= 60
    assert len(cases()) == sum(points.values())


CASES = _cases_to_play()
IN_MEDIUM = _last_of_each_class(CASES)


@pytest.mark.parametrize("case", sizes.large_except(IN_MEDIUM, CASES), ids=str)
async def test_a_request_ends_exactly_once_after_a_kill(case: Case, tmp_path: Path) -> None:
    ending = await play(case, tmp_path)
    assert ending.has_died, "the agent did not die at its failpoint"
    if matrix_document.RESULTS:
        matrix_document.store(case, ending)
    else:
        assert matrix_document.is_published(case, ending)
    assert ending.violations == []
    assert ending.state == case.scene.state
    assert len(ending.reports) == (1 if case.scene.outcomes else 0)
    assert all(report["outcome"] in case.scene.outcomes for report in ending.reports)
    assert ending.trace["child-started:before"] <= MAX_COLLECTIONS
    if case.scene is LEARNED:
        memory, reason = PrinterMemory(StateDirectory(tmp_path / "state")).peek()
        assert ([printer.id for printer in memory.printers], reason) == (["cups:kitchen"], None)
    if case.scene is PLAIN:
        assert len(set(ending.bodies)) == 1, "the report was sent again with different bytes"
        assert {"received", "running"} <= set(ending.acknowledged)


@pytest.mark.parametrize("kind", sizes.large_except(["network"], ["network", "application"]))
async def test_a_request_whose_collection_crashed_twice_is_reported_as_interrupted(
    kind: str, tmp_path: Path
) -> None:
    async with StrictService() as service:
        config = write_config(tmp_path, service.base_url)
        request_id = await service.request_report(kind)
        for run_name in ("first", "second"):
            plan = "child-checkpoint:after:1"
            async with crashing_agent(plan, config, tmp_path / run_name) as agent:
                code = await asyncio.wait_for(agent.process.wait(), WITHIN_S)
                assert code == -signal.SIGKILL
        async with crashing_agent(NEVER, config, tmp_path / "third") as agent:
            assert await until_ended(agent, tmp_path, request_id) == "submitted"
            assert await agent.stop() == 0
    assert service.violations == []
    (report,) = service.reports
    assert (report["outcome"], report["failureReason"]) == ("failed", "execution-interrupted")
    assert report["report"] is None
    assert "child-started:before" not in (tmp_path / "third").read_text()


REQUEST_COUNT = 6
"""Number of requests of one kind. The first request starts a collection. The next collection
answers all further requests."""


@pytest.mark.parametrize(
    "plan",
    sizes.large_except(
        ["report-handed-over:after:4"],
        [
            "request-moved:after:8",
            "child-result:after:2",
            "report-handed-over:before:3",
            "report-handed-over:after:4",
            "report-settled:after:3",
        ],
    ),
)
async def test_an_agent_killed_during_many_reports_answers_each_request_once(
    plan: str, memory_home: Path
) -> None:
    async with StrictService() as service:
        limits = "min_collection_interval_seconds = 1"
        config = write_config(memory_home, service.base_url, heartbeat="", limits=limits)
        request_ids = [await service.request_report("network") for _ in range(REQUEST_COUNT)]
        async with crashing_agent(plan, config, memory_home / "first") as agent:
            code = await asyncio.wait_for(agent.process.wait(), WITHIN_S)
        assert code == -signal.SIGKILL, "the agent did not die at its failpoint"
        async with crashing_agent(NEVER, config, memory_home / "second") as agent:
            for request_id in request_ids:
                assert await until_ended(agent, memory_home, request_id) == "submitted"
            assert await agent.stop() == 0
    assert service.violations == []
    assert sorted(r["requestId"] for r in service.reports) == sorted(request_ids)
    assert all(report["outcome"] == "completed" for report in service.reports)
    traces = [(memory_home / run_name).read_text() for run_name in ("first", "second")]
    assert traces[0].count("child-started:before") <= 2
    assert traces[1].count("child-started:before") <= 2
