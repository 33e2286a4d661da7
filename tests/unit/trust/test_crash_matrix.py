"""Tests that docs/crash-matrix.md has a row for each failpoint of the agent, and a result for each
case.
"""

from agent.adapters.failpoints import Failpoint
from tests.scenario.crash import matrix_document
from tests.scenario.crash.matrix import NOT_IN_A_REQUEST, SCENES, cases


def test_each_failpoint_of_the_agent_has_a_row() -> None:
    assert matrix_document.failpoints_of_document() == set(Failpoint)


def test_each_case_of_the_crash_matrix_has_a_result() -> None:
    published = matrix_document.published()
    assert published.keys() == {str(case) for case in cases()}
    assert matrix_document.DOCUMENT.read_text() == matrix_document.document(published)


def test_each_result_is_one_that_the_crash_tests_allow() -> None:
    published = matrix_document.published()
    for case in cases():
        state, reports, _ = published[str(case)].split("; ")
        assert state == case.scene.state, case
        allowed = {f"one report, {outcome}" for outcome in case.scene.outcomes} or {"no report"}
        assert reports in allowed, case


def test_no_failpoint_has_both_a_case_and_a_reason_for_having_none() -> None:
    with_case = {failpoint for scene in SCENES for failpoint in scene.occurrences}
    assert not with_case & NOT_IN_A_REQUEST.keys()
