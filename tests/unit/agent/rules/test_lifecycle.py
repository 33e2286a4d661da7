"""Tests that the state table and the boot actions of a request equal the tables in this file."""

import itertools

import pytest

from agent.rules import lifecycle
from agent.rules.lifecycle import BootAction, Event, LifecycleError, State

# Each line: a state, an event, and the state after the event.
STEPS = """
received      accepted         acknowledged
received      expired          expired
received      refused          rejected
acknowledged  redelivered      received
acknowledged  started          running
acknowledged  expired          expired
acknowledged  refused          rejected
running       stopped          acknowledged
running       retried          acknowledged
running       report-sealed    reported
running       refused          rejected
reported      report-accepted  submitted
reported      refused          rejected
"""
TABLE = {
    (State(state), Event(event)): State(after)
    for state, event, after in (line.split() for line in STEPS.strip().splitlines())
}

# Each line: the state of a request, its number of attempts, whether it has expired, and its boot
# action.
BOOT = """
received      0  no   acknowledge
received      0  yes  expire
acknowledged  0  no   run
acknowledged  1  no   run
acknowledged  0  yes  expire
running       1  no   run-again
running       2  no   report-interrupted
running       3  no   report-interrupted
running       1  yes  report-interrupted
running       2  yes  report-interrupted
reported      1  no   resend
reported      2  yes  resend
submitted     1  no   nothing
submitted     1  yes  nothing
expired       0  no   nothing
expired       0  yes  nothing
rejected      0  no   nothing
rejected      1  yes  nothing
"""


def test_the_transitions_equal_the_table() -> None:
    assert dict(lifecycle.TRANSITIONS) == TABLE


@pytest.mark.parametrize(("state", "event"), list(itertools.product(State, Event)))
def test_each_event_in_each_state_is_a_transition_or_an_error(state: State, event: Event) -> None:
    if (state, event) in TABLE:
        assert lifecycle.advance(state, event) is TABLE[state, event]
    else:
        with pytest.raises(LifecycleError, match=f"{event} is not possible in {state}"):
            lifecycle.advance(state, event)


def test_final_states_have_no_transitions() -> None:
    assert {State.SUBMITTED, State.EXPIRED, State.REJECTED} == lifecycle.FINAL
    assert not lifecycle.FINAL & {state for state, _ in lifecycle.TRANSITIONS}


def test_every_state_is_reachable_and_every_open_request_can_be_rejected() -> None:
    reached = {State.RECEIVED, *lifecycle.TRANSITIONS.values()}
    assert reached == set(State)
    for state in set(State) - lifecycle.FINAL:
        transitions = lifecycle.TRANSITIONS.items()
        successors = {after for (before, _), after in transitions if before is state}
        assert State.REJECTED in successors


def test_every_event_causes_a_transition() -> None:
    assert {event for _, event in lifecycle.TRANSITIONS} == set(Event)


@pytest.mark.parametrize("row", BOOT.strip().splitlines())
def test_boot_actions_equal_the_table(row: str) -> None:
    state, attempt, is_expired, action = row.split()

    boot_action = lifecycle.boot_action(
        State(state), attempt=int(attempt), is_expired=is_expired == "yes"
    )

    assert boot_action is BootAction(action)


def test_every_state_has_a_boot_action_and_every_boot_action_occurs() -> None:
    results = {
        lifecycle.boot_action(state, attempt=attempt, is_expired=is_expired)
        for state in State
        for attempt in (0, 1, 2)
        for is_expired in (False, True)
    }

    assert results == set(BootAction)
    assert {row.split()[0] for row in BOOT.strip().splitlines()} == set(State)
