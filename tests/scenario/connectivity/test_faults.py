"""The running agent records real faults of the path to the service, with their cause.

All venues run at the same time. `make test-connectivity` also plays short faults, and prints how
exact the recorded times are.
"""

from random import Random
from typing import Any

import pytest

from agent.wire.payloads.history import History
from tests import sizes
from tests.scenario.connectivity.faults import FAULTS
from tests.scenario.connectivity.play import (
    EARLY_S,
    ENDS_WITHIN_S,
    Case,
    Result,
    pair,
    play_cases,
    play_healthy,
    run_venues,
    single,
)

pytestmark = pytest.mark.needs("veth")

GRACE_S = 5.0
"""Seconds after the start of an agent in which no interruption is recorded. In production this is
longer."""
DELAY_MAX_S = 60.0
"""Maximum delay of the recorded start of an incident. It is long, because the machine may be
busy."""
LENGTH_S = {"change": 10.0, "silence": 30.0, "call": 90.0}
"""Length of a fault that is not in `IN_MEDIUM`, by how the agent detects it (`NoticedBy`)."""
IN_MEDIUM = [
    single("carrier", 10.0), single("lease", 10.0), single("gateway-hung", 30.0),
    single("names-gone", 30.0), single("provider-silent", 30.0), single("service-killed", 10.0),
    single("key-refused", 30.0),
]  # fmt: skip
"""One fault for each cause."""
CASES = [
    *IN_MEDIUM,
    *(single(kind, LENGTH_S[fault.noticed_by]) for kind, fault in FAULTS.items()
      if kind not in {case.parts[0].kind for case in IN_MEDIUM}),
    *(pair(Random(seed)) for seed in range(4)),
]  # fmt: skip


@pytest.fixture(scope="module")
def results(selected_parameters: list[dict[str, Any]]) -> dict[Case, Result]:
    cases = [parameters["case"] for parameters in selected_parameters if "case" in parameters]
    return {result.case: result for result in play_cases(cases, GRACE_S)}


@pytest.mark.parametrize("case", sizes.large_except(IN_MEDIUM, CASES), ids=str)
def test_a_fault_is_recorded_with_its_cause(case: Case, results: dict[Case, Result]) -> None:
    result = results[case]
    assert result.causes == case.expected, result.incidents
    assert -EARLY_S <= result.begin_error_s <= DELAY_MAX_S
    assert -EARLY_S <= result.end_error_s <= ENDS_WITHIN_S


@pytest.mark.large
def test_a_healthy_venue_has_no_incident() -> None:
    history: History
    (history,) = run_venues([play_healthy], [15.0], GRACE_S)
    assert history.incidents == ()
    assert [event.kind for event in history.events] == [
        "address-changed", "address-changed", "agent-started",
    ]  # fmt: skip
