"""Tests of the states of a request: the table of transitions, and the rules of `lifecycle`."""

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.wire.vocabulary import RequestStatus
from controlplane.devices.requests import lifecycle
from controlplane.devices.requests.lifecycle import TRANSITIONS, Event

STATUSES: tuple[RequestStatus, ...] = get_args(RequestStatus)
EVENTS: tuple[Event, ...] = get_args(Event)
PROGRESS = ("queued", "received", "running")
EXPECTED = """
queued    acknowledge:received received
queued    acknowledge:running  running
queued    result:completed     completed
queued    result:partial       partial
queued    result:failed        failed
queued    expire               expired
queued    revoke               expired
received  acknowledge:received received
received  acknowledge:running  running
received  result:completed     completed
received  result:partial       partial
received  result:failed        failed
received  expire               expired
received  revoke               expired
running   acknowledge:received running
running   acknowledge:running  running
running   result:completed     completed
running   result:partial       partial
running   result:failed        failed
running   expire               expired
running   revoke               expired
expired   result:completed     completed
expired   result:partial       partial
expired   result:failed        failed
expired   expire               expired
expired   revoke               expired
"""
"""Each line: a status, an event, and the status after the event."""


def test_the_transitions_are_those_of_the_expected_table() -> None:
    results = {
        (status, event, after)
        for status in STATUSES
        for event, after in TRANSITIONS[status].items()
    }
    assert results == {tuple(line.split()) for line in EXPECTED.strip().splitlines()}


def test_every_status_of_the_contract_has_a_row() -> None:
    assert set(TRANSITIONS) == set(STATUSES)


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("event", EVENTS)
def test_move_follows_the_table_and_refuses_other_transitions(
    status: RequestStatus, event: Event
) -> None:
    if event in TRANSITIONS[status]:
        assert lifecycle.move(status, event) == TRANSITIONS[status][event]
    else:
        with pytest.raises(lifecycle.TransitionRefusedError) as refused:
            lifecycle.move(status, event)
        assert (refused.value.status, refused.value.event) == (status, event)


@given(st.lists(st.sampled_from(EVENTS), max_size=20))
def test_no_sequence_of_events_moves_a_request_backwards(events: list[Event]) -> None:
    status = lifecycle.INITIAL
    for event in events:
        try:
            after = lifecycle.move(status, event)
        except lifecycle.TransitionRefusedError:
            continue
        assert status not in lifecycle.FINISHED
        if status in PROGRESS and after in PROGRESS:
            assert PROGRESS.index(after) >= PROGRESS.index(status)
        if status == "expired":
            assert after not in PROGRESS
        status = after


@given(st.sampled_from(STATUSES), st.sampled_from(EVENTS))
def test_a_repeated_event_does_not_change_the_status(status: RequestStatus, event: Event) -> None:
    try:
        once = lifecycle.move(status, event)
        twice = lifecycle.move(once, event)
    except lifecycle.TransitionRefusedError:
        return
    assert once == twice


@pytest.mark.parametrize("status", STATUSES)
def test_only_open_requests_become_due_at_their_expiry(status: RequestStatus) -> None:
    expiry = datetime(2026, 11, 20, tzinfo=UTC)
    just_before = expiry - timedelta(microseconds=1)
    assert lifecycle.is_due(status, expiry, expiry) == (status in lifecycle.OPEN)
    assert not lifecycle.is_due(status, expiry, just_before)
