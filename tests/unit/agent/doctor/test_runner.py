"""Tests of the runner of doctor's checks: order, deadlines and causes. The checks are made for the
tests.
"""

import threading
from collections.abc import Callable, Iterator

import pytest

from agent.doctor.check import Check, CheckResult, Outcome, fail, ok, skipped, warn
from agent.doctor.context import Context
from agent.doctor.root_causes import any_failed
from agent.doctor.runner import run_checks


def check(
    name: str,
    actual: Outcome | Callable[[Context], Outcome],
    depends_on: tuple[str, ...] = (),
    after: tuple[str, ...] = (),
    deadline_s: float = 60.0,
) -> Check:
    run = (lambda _: actual) if isinstance(actual, Outcome) else actual
    return Check(name, "network", run, depends_on, after, fix="look closer", deadline_s=deadline_s)


def results_by_name(*checks: Check, total_s: float = 60.0) -> dict[str, CheckResult]:
    results = run_checks(checks, Context(), total_s=total_s)
    assert [o.name for o in results] == [c.name for c in checks]
    return {o.name: o for o in results}


@pytest.fixture
def hang() -> Iterator[Callable[[Context], Outcome]]:
    """The function of a check that ends only after the test. Therefore a test hangs if the runner
    waits for this check.
    """
    is_over = threading.Event()

    def wait(_: Context) -> Outcome:
        is_over.wait()
        return ok("too late")

    yield wait
    is_over.set()


def test_a_skipped_check_names_the_first_failed_check() -> None:
    actual = results_by_name(
        check("a", fail("broken", "fix it")),
        check("b", ok("never run"), ("a",)),
        check("c", ok("never run"), ("b",)),
        check("d", ok("run")),
    )
    assert [actual[name].status for name in "abcd"] == ["fail", "skipped", "skipped", "ok"]
    assert (actual["b"].because, actual["c"].because) == ("a", "a")


def test_skipped_checks_and_warnings_block_no_dependent_checks() -> None:
    actual = results_by_name(
        check("a", skipped("not here")),
        check("b", warn("hm", "look")),
        check("c", ok("run"), ("a", "b")),
    )
    assert actual["c"].status == "ok"


def test_a_check_runs_after_those_named_in_after_but_does_not_depend_on_them() -> None:
    names: list[str] = []

    def recording(name: str, outcome: Outcome) -> Callable[[Context], Outcome]:
        def run(_: Context) -> Outcome:
            names.append(name)
            return outcome

        return run

    actual = results_by_name(
        check("a", recording("a", fail("broken", "fix it"))),
        check("b", recording("b", ok("run")), after=("a",)),
    )
    assert names == ["a", "b"]
    assert actual["b"].status == "ok"


def test_an_explained_failure_and_its_dependent_checks_name_the_cause() -> None:
    actual = results_by_name(
        check("gateway", warn("none", "plug it in", may_cause=True)),
        check("name", fail("no name", "check DNS", explained_by=("gateway",))),
        check("connection", ok("never run"), ("name",)),
    )
    assert actual["gateway"].status == "fail"
    assert actual["name"].because == actual["connection"].because == "gateway"
    assert actual["name"].fix == ""


def test_a_warning_that_cannot_be_a_cause_explains_no_failure() -> None:
    actual = results_by_name(
        check("a", warn("unlovely", "tidy up")),
        check("b", fail("broken", "fix it", explained_by=("a",))),
    )
    assert [actual[name].status for name in "ab"] == ["warn", "fail"]


def test_the_first_cause_of_a_chain_is_named() -> None:
    actual = results_by_name(
        check("interfaces", warn("none", "cable", may_cause=True)),
        check("gateway", warn("none", "DHCP", explained_by=("interfaces",), may_cause=True)),
        check("name", fail("no name", "DNS", explained_by=("gateway", "interfaces"))),
    )
    assert actual["name"].because == "interfaces"
    assert actual["interfaces"].status == "fail"


def test_a_check_that_hangs_is_given_up_and_its_own_fix_reported(
    hang: Callable[[Context], Outcome],
) -> None:
    actual = results_by_name(check("a", hang, deadline_s=0.1), check("b", ok("run")))
    assert actual["a"].status == "fail"
    assert actual["a"].fix == "look closer"
    assert actual["b"].status == "ok"


def test_all_checks_end_in_time_although_each_check_hangs(
    hang: Callable[[Context], Outcome],
) -> None:
    checks = [check(f"c{n}", hang, (f"c{n - 1}",) if n % 3 else ()) for n in range(30)]
    actual = results_by_name(*checks, total_s=0.3)
    assert {o.status for o in actual.values()} == {"fail", "skipped"}


def test_independent_checks_run_concurrently() -> None:
    barrier = threading.Barrier(4, timeout=60)

    def meet(_: Context) -> Outcome:
        barrier.wait()
        return ok("met")

    actual = results_by_name(*(check(f"c{n}", meet) for n in range(4)))
    assert all(o.status == "ok" for o in actual.values())


def test_a_check_that_raises_an_error_fails() -> None:
    def broken(_: Context) -> Outcome:
        raise RuntimeError("oops")

    actual = results_by_name(check("a", broken))["a"]
    assert (actual.status, actual.fix) == ("fail", "look closer")
    assert "RuntimeError: oops" in actual.detail


@pytest.mark.parametrize(
    ("outcome", "is_success"), [(ok(""), True), (warn("", "f"), True), (fail("", "f"), False)]
)
def test_only_a_failed_check_counts_as_a_failure(outcome: Outcome, is_success: bool) -> None:
    assert any_failed(results_by_name(check("a", outcome)).values()) is (not is_success)
