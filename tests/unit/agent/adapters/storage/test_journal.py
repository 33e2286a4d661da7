"""Tests of the journal of requests. Rows that cannot be read are quarantined."""

import sqlite3
from contextlib import AbstractContextManager
from datetime import timedelta
from uuid import UUID

import pytest

from agent.adapters.failpoints import Failpoint
from agent.adapters.storage.database import Database
from agent.adapters.storage.journal import (
    PRUNE_INTERVAL_ROWS,
    TOMBSTONE_AGE,
    TOMBSTONES_MAX,
    Journal,
)
from agent.adapters.storage.state import StateDirectory
from agent.rules.lifecycle import Event, LifecycleError, State
from tests.unit.agent.samples import BINDING, NOW, command

REQUEST = UUID(int=1)


def damage(database: Database, column: str, value: str) -> None:
    with database.transaction(Failpoint.COUNTED) as connection:
        connection.execute(
            f"UPDATE requests SET {column} = ? WHERE request_id = ?", (value, str(REQUEST))
        )


def test_a_received_request_is_stored_unchanged(journal: Journal) -> None:
    assert journal.add(command(kind="application"), NOW)

    entry = journal.get(REQUEST)

    assert entry is not None
    assert (entry.request_id, entry.binding_id) == (REQUEST, BINDING)
    assert (entry.kind, entry.state, entry.attempt) == ("application", State.RECEIVED, 0)
    assert entry.expires_at == NOW + timedelta(minutes=10)
    assert entry.received_at == entry.updated_at == NOW
    assert (entry.running_acknowledged, entry.report_id, entry.detail) == (False, None, None)


def test_a_request_delivered_again_is_not_added(journal: Journal) -> None:
    journal.add(command(), NOW)

    assert not journal.add(command(kind="application"), NOW + timedelta(hours=1))
    entry = journal.get(REQUEST)
    assert entry is not None
    assert (entry.kind, entry.received_at) == ("network", NOW)


def test_an_ended_request_is_not_added_again(journal: Journal) -> None:
    journal.add(command(), NOW)
    entry = journal.get(REQUEST)
    assert entry is not None
    journal.move(entry, Event.EXPIRED, NOW)

    assert not journal.add(command(), NOW)
    assert journal.unfinished() == ()


def test_get_returns_none_for_an_unknown_request(journal: Journal) -> None:
    assert journal.get(UUID(int=99)) is None


def test_attempts_count_collections_that_were_not_cleanly_stopped(journal: Journal) -> None:
    journal.add(command(), NOW)
    entry = journal.get(REQUEST)
    assert entry is not None
    attempts = []
    for event in (
        Event.ACCEPTED, Event.STARTED, Event.STOPPED, Event.STARTED, Event.RETRIED, Event.STARTED,
    ):  # fmt: skip
        entry = journal.move(entry, event, NOW)
        attempts.append(entry.attempt)

    assert attempts == [0, 1, 0, 1, 1, 2]
    assert entry.state is State.RUNNING
    assert entry == journal.get(REQUEST)


def test_an_undefined_transition_raises_an_error_and_changes_nothing(journal: Journal) -> None:
    journal.add(command(), NOW)
    entry = journal.get(REQUEST)
    assert entry is not None

    with pytest.raises(LifecycleError):
        journal.move(entry, Event.STARTED, NOW)

    assert journal.get(REQUEST) == entry
    journal.move(entry, Event.REFUSED, NOW, detail="no longer wanted")
    ended = journal.get(REQUEST)
    assert ended is not None
    assert (ended.state, ended.detail) == (State.REJECTED, "no longer wanted")


def test_requests_are_listed_in_the_order_of_receipt(journal: Journal) -> None:
    for number in (3, 1, 2):
        journal.add(command(number), NOW + timedelta(microseconds=number))

    assert [e.request_id.int for e in journal.in_state(State.RECEIVED)] == [1, 2, 3]
    assert [e.request_id.int for e in journal.unfinished()] == [1, 2, 3]
    assert journal.in_state(State.RUNNING) == ()


def test_the_acknowledged_start_of_a_request_is_stored(journal: Journal) -> None:
    journal.add(command(), NOW)

    journal.note_running_acknowledged(REQUEST)

    entry = journal.get(REQUEST)
    assert entry is not None
    assert entry.running_acknowledged


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("binding_id", "no uuid"),
        ("kind", "camera"),
        ("expires_at", "soon"),
        ("state", "lost"),
        ("received_at", ""),
        ("report_id", "x"),
    ],
)
def test_a_row_that_cannot_be_read_is_set_aside(
    journal: Journal, database: Database, state: StateDirectory, column: str, value: str
) -> None:
    journal.add(command(1), NOW)
    journal.add(command(2), NOW)
    damage(database, column, value)

    assert [e.request_id.int for e in journal.unfinished()] == [2]

    quarantined = list(state.quarantine_path.iterdir())
    assert len(quarantined) == 1
    assert quarantined[0].name.endswith("-journal-row.json")
    assert str(REQUEST) in quarantined[0].read_text()
    assert database.counters() == {"rows_quarantined": 1}
    assert journal.get(REQUEST) is None
    assert journal.add(command(1), NOW), "a request whose row was set aside must be accepted again"


def test_only_old_tombstones_are_deleted(journal: Journal) -> None:
    """A tombstone is the row of an ended request. It prevents a second execution if the service
    delivers the request again.
    """
    for number in (1, 2, 3):
        journal.add(command(number), NOW)
    first, second = journal.get(UUID(int=1)), journal.get(UUID(int=2))
    assert first is not None
    assert second is not None
    journal.move(first, Event.REFUSED, NOW)
    journal.move(second, Event.REFUSED, NOW + timedelta(seconds=2))

    journal.prune(NOW + TOMBSTONE_AGE)
    assert all(journal.get(UUID(int=number)) for number in (1, 2, 3))
    journal.prune(NOW + TOMBSTONE_AGE + timedelta(seconds=1))

    assert [journal.get(UUID(int=number)) is None for number in (1, 2, 3)] == [True, False, False]
    assert journal.add(command(1), NOW)


def test_tombstones_are_bounded_in_number(journal: Journal, database: Database) -> None:
    with database.transaction(Failpoint.COUNTED) as connection:
        connection.executemany(
            "INSERT INTO requests (request_id, binding_id, kind, expires_at, state, received_at,"
            " updated_at) VALUES (?, ?, 'network', ?, ?, ?, ?)",
            (
                (
                    str(UUID(int=n)), str(BINDING), NOW.isoformat(),
                    "received" if n < 5 else "submitted",
                    (NOW + timedelta(seconds=n)).isoformat(), NOW.isoformat(),
                )
                for n in range(TOMBSTONES_MAX + 20)
            ),
        )  # fmt: skip

    journal.prune(NOW)

    rows = database.query("SELECT count(*), sum(state = 'received') FROM requests")
    assert tuple(rows[0]) == (TOMBSTONES_MAX + 5, 5)
    assert journal.get(UUID(int=TOMBSTONES_MAX + 19)) is not None
    assert journal.get(UUID(int=6)) is None


def test_the_journal_is_pruned_while_it_grows(journal: Journal) -> None:
    journal.add(command(1), NOW)
    journal.move(journal.in_state(State.RECEIVED)[0], Event.REFUSED, NOW)
    assert journal.count_unfinished() == 0

    for number in range(2, PRUNE_INTERVAL_ROWS + 1):
        journal.add(command(number), NOW + TOMBSTONE_AGE + timedelta(seconds=1))

    assert journal.get(REQUEST) is None
    assert journal.count_unfinished() == PRUNE_INTERVAL_ROWS - 1


def test_transitions_are_synced_unless_the_agent_repeats_them_after_a_power_loss(
    journal: Journal, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable: list[bool] = []
    transaction = database.transaction

    def recording_transaction(
        failpoint: Failpoint, *, durably: bool = True
    ) -> AbstractContextManager[sqlite3.Connection]:
        durable.append(durably)
        return transaction(failpoint, durably=durably)

    monkeypatch.setattr(database, "transaction", recording_transaction)

    journal.add(command(), NOW)
    acknowledged = journal.move(journal.in_state(State.RECEIVED)[0], Event.ACCEPTED, NOW)
    running = journal.move(acknowledged, Event.STARTED, NOW)
    journal.note_running_acknowledged(REQUEST)
    journal.move(running, Event.REFUSED, NOW)

    assert durable == [
        True,  # added
        False,  # receipt acknowledged: the agent repeats the acknowledgement
        True,  # started
        False,  # start acknowledged: the agent repeats the acknowledgement
        True,  # refused
    ]
