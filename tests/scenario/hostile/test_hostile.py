"""No reply of a service or a network causes a crash, a lost or duplicate report, or a busy loop.

Each case runs the whole agent, over real connections and on virtual time, against a service that
answers one operation wrongly for some minutes and then recovers. A medium run tests at least a
third of the faults with one operation each. A large run tests each fault with three operations.
`make test-hostile` (HOSTILE_CASES=full) tests each fault with all operations.
"""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.rules.health import CONDITIONS
from agent.rules.lifecycle import FINAL, State
from tests import sizes
from tests.fakes.hostile_service import HostileService, status
from tests.fakes.virtual_clock import VirtualClock, run_in_virtual_time
from tests.scenario.hostile.cases import OPERATIONS, Case, cases
from tests.scenario.simulated_agent import config_for, simulated_agent

IS_FULL = os.environ.get("HOSTILE_CASES") == "full"
HOSTILE_FOR_S = 400.0
"""Duration of the fault, in seconds. In this time, the agent can wait for three replies of
`onCommands`, and abandon each of them when it exceeds the time limit of a long poll."""
BACK_WITHIN_S = 2 * 3600.0
"""Time after the fault within which the second request must end, in seconds. It is so long because
the service can have requested a wait of an hour (Retry-After), and because a revoked device polls
slowly."""
CALLS_A_MINUTE_MAX = 30
LONG_S = 1e6
"""Time until the requests expire, in seconds. No request expires during a case."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The result of a case.

    The first request is created during the fault, and the second request after the fault.
    """

    conditions: set[str]
    most_calls_a_minute: int
    first_state: State | None
    first_reports: int
    second_reports: int
    violations: list[str]


CASES = [case for case in cases() if IS_FULL or case.rank in {0, 2, 5}]
FAULTS = list(dict.fromkeys(case.name for case in cases()))
ONE_OF_EACH_CONDITION = set({case.codes: case.name for case in cases()}.values())
"""The name of one fault for each value of `Case.codes`."""
IN_MEDIUM = [
    case
    for case in CASES
    if case.rank == 0 and (case.name in ONE_OF_EACH_CONDITION or FAULTS.index(case.name) % 4 == 0)
]


async def play(case: Case, home: Path) -> Ending:
    """Request a report while the service has the fault, and a second report after the fault."""
    clock = VirtualClock()
    async with HostileService(clock.true_time) as service:
        service.faults[case.operation] = case.fault
        if case.operation == "current":
            service.faults["heartbeat"] = status(403)  # makes the agent call `current`
        async with simulated_agent(config_for(home, service.base_url), home, clock) as app:
            first = await service.request_report("network", expires_in_s=LONG_S)
            await asyncio.sleep(HOSTILE_FOR_S)
            conditions, call_peak = set(app.conditions_seen), service.most_calls_a_minute()
            service.faults.clear()
            second = await service.request_report("application", expires_in_s=LONG_S)
            await app.until_ended({second}, BACK_WITHIN_S)
            await asyncio.sleep(30)  # a duplicate report would arrive in this time
            entry = app.entry(first)
        return Ending(
            conditions=conditions | app.conditions_seen,
            most_calls_a_minute=call_peak,
            first_state=None if entry is None else entry.state,
            first_reports=sum(r["requestId"] == first for r in service.reports),
            second_reports=sum(r["requestId"] == second for r in service.reports),
            violations=service.violations,
        )


def test_there_are_at_least_450_cases_and_their_conditions_exist() -> None:
    assert len(CASES) >= 200
    assert len(list(cases())) >= 450
    expected_codes = {code for case in cases() for code in case.codes}
    assert expected_codes <= CONDITIONS.keys()


def test_a_medium_run_has_a_third_of_the_faults_and_each_operation_and_condition() -> None:
    assert len({case.name for case in IN_MEDIUM}) >= len(FAULTS) / 3
    assert {case.operation for case in IN_MEDIUM} == set(OPERATIONS)
    assert {code for case in IN_MEDIUM for code in case.codes} == {
        code for case in cases() for code in case.codes
    }


@pytest.mark.parametrize("case", sizes.large_except(IN_MEDIUM, CASES), ids=str)
def test_the_agent_survives_a_hostile_service_and_recovers(case: Case, memory_home: Path) -> None:
    ending = run_in_virtual_time(play(case, memory_home))
    assert "internal-error" not in ending.conditions
    assert not case.codes or ending.conditions & set(case.codes), ending.conditions
    assert ending.most_calls_a_minute <= CALLS_A_MINUTE_MAX
    assert ending.violations == []
    assert ending.second_reports == 1
    assert ending.first_state in FINAL
    assert ending.first_reports == (1 if ending.first_state is State.SUBMITTED else 0)
