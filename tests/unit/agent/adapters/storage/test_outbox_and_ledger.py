"""Tests that the size of the outbox is limited, and that a report and the new state of its request
are stored in one transaction.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from agent.adapters.failpoints import Failpoint
from agent.adapters.storage.database import Database
from agent.adapters.storage.history import read_history
from agent.adapters.storage.journal import Entry, Journal
from agent.adapters.storage.ledger import Ledger
from agent.adapters.storage.outbox import Outbox
from agent.adapters.storage.state import StateDirectory
from agent.errors import StateError
from agent.rules.lifecycle import Event, LifecycleError, State
from tests.unit.agent.samples import NOW, command, report

REQUEST = UUID(int=1)
DAY = timedelta(days=1)
NO_LIMIT = 10**9


def queue(
    ledger: Ledger, number: int, size: int, at: datetime = NOW, request_id: UUID | None = None
) -> None:
    """Queue a report of ``size`` bytes whose request is not in the journal."""
    sealed = report(number, request_id)
    ledger.hand_over(None, replace(sealed, body=b"x" * size), at)


def add_running_request(journal: Journal, number: int = 1) -> Entry:
    """Add a request, and start its collection. Return its entry."""
    journal.add(command(number), NOW)
    entry = journal.get(UUID(int=number))
    assert entry is not None
    return journal.move(journal.move(entry, Event.ACCEPTED, NOW), Event.STARTED, NOW)


def report_numbers(report_ids: list[UUID]) -> list[int]:
    """Return the numbers from which `samples.report` created these ids."""
    return [report_id.int - 0x4E0000 for report_id in report_ids]


def test_an_empty_outbox_has_no_oldest_report(outbox: Outbox) -> None:
    assert outbox.oldest() is None
    depth = outbox.depth()
    assert (depth.reports, depth.size_bytes, depth.oldest_at) == (0, 0, None)


def test_the_oldest_report_is_sent_first(outbox: Outbox, ledger: Ledger) -> None:
    for number in (2, 1, 3):
        queue(ledger, number, 10, NOW + timedelta(seconds=number))
    sent = []
    while (item := outbox.oldest()) is not None:
        sent.append(item.report_id)
        ledger.settle(item, NOW)

    assert report_numbers(sent) == [1, 2, 3]


def test_depth_counts_reports_bytes_and_the_oldest_time(outbox: Outbox, ledger: Ledger) -> None:
    queue(ledger, 1, 10, NOW)
    queue(ledger, 2, 20, NOW - DAY)

    depth = outbox.depth()

    assert (depth.reports, depth.size_bytes, depth.oldest_at) == (2, 30, NOW - DAY)


def test_a_report_that_is_queued_twice_is_stored_once(outbox: Outbox, ledger: Ledger) -> None:
    queue(ledger, 1, 10)
    queue(ledger, 1, 99)

    assert outbox.depth().size_bytes == 10


def test_no_report_within_the_bounds_is_dropped(outbox: Outbox, ledger: Ledger) -> None:
    queue(ledger, 1, 10, NOW - DAY)
    queue(ledger, 2, 10)

    assert outbox.over_bounds(20, DAY, NOW) == ()


@pytest.mark.parametrize(
    ("max_bytes", "dropped"),
    [(40, []), (39, [3]), (30, [3]), (29, [3, 4]), (15, [3, 4, 1]), (9, [3, 4, 1, 2])],
)
def test_scheduled_reports_are_dropped_first_then_the_oldest(
    outbox: Outbox, ledger: Ledger, max_bytes: int, dropped: list[int]
) -> None:
    """Reports 1 and 2 answer requests. Reports 3 and 4 are scheduled."""
    queue(ledger, 1, 10, NOW - 4 * timedelta(hours=1), UUID(int=1))
    queue(ledger, 2, 10, NOW - 3 * timedelta(hours=1), UUID(int=2))
    queue(ledger, 3, 10, NOW - 2 * timedelta(hours=1))
    queue(ledger, 4, 10, NOW - 1 * timedelta(hours=1))

    over = outbox.over_bounds(max_bytes, DAY, NOW)

    assert report_numbers([item.report_id for item in over]) == dropped


def test_a_report_that_is_too_old_is_dropped_before_a_scheduled_report(
    outbox: Outbox, ledger: Ledger
) -> None:
    """Together, the reports exceed the size limit. Without the old one, they do not."""
    queue(ledger, 1, 10, NOW - DAY - timedelta(microseconds=1), UUID(int=1))
    queue(ledger, 2, 10, NOW)

    over = outbox.over_bounds(10, DAY, NOW)

    assert report_numbers([item.report_id for item in over]) == [1]


def test_dropped_reports_are_counted_and_returned(
    outbox: Outbox, ledger: Ledger, journal: Journal, database: Database
) -> None:
    entry = add_running_request(journal)
    sealed = report(1, REQUEST)
    ledger.hand_over(entry, sealed, NOW - 2 * DAY)
    queue(ledger, 2, 10)

    dropped = ledger.drop_over_bounds(NO_LIMIT, DAY, NOW)

    assert report_numbers([item.report_id for item in dropped]) == [1]
    assert outbox.depth().reports == 1
    ended = journal.get(REQUEST)
    assert ended is not None
    assert (ended.state, ended.detail) == (
        State.REJECTED,
        "dropped: too old, or the outbox is full",
    )
    assert database.counters() == {"reports_dropped": 1}
    assert ledger.drop_over_bounds(NO_LIMIT, DAY, NOW) == ()


def test_a_report_and_its_request_are_handed_over_together(
    outbox: Outbox, ledger: Ledger, journal: Journal
) -> None:
    entry = add_running_request(journal)
    sealed = report(1, REQUEST)

    ledger.hand_over(entry, sealed, NOW)

    item, after = outbox.oldest(), journal.get(REQUEST)
    assert item is not None
    assert after is not None
    assert (item.report_id, item.request_id, item.body) == (sealed.report_id, REQUEST, sealed.body)
    assert (item.outcome, item.tier, item.kind) == ("failed", 0, "network")
    assert (after.state, after.report_id, after.outcome) == (
        State.REPORTED,
        sealed.report_id,
        "failed",
    )


def test_no_report_is_queued_after_an_undefined_transition(
    outbox: Outbox, ledger: Ledger, journal: Journal
) -> None:
    entry = add_running_request(journal)
    sealed = report(1, REQUEST)

    with pytest.raises(LifecycleError):
        ledger.hand_over(replace(entry, state=State.RECEIVED), sealed, NOW)

    assert outbox.oldest() is None
    assert journal.get(REQUEST) == entry


def test_a_report_that_cannot_be_queued_leaves_the_request_running(
    outbox: Outbox, ledger: Ledger, journal: Journal, database: Database
) -> None:
    entry = add_running_request(journal)
    sealed = report(1, REQUEST)
    with database.transaction(Failpoint.COUNTED) as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, 'no room'); END"
        )

    with pytest.raises(Exception, match="no room"):
        ledger.hand_over(entry, sealed, NOW)

    assert outbox.oldest() is None
    assert journal.get(REQUEST) == entry


def test_an_accepted_report_closes_its_request(
    outbox: Outbox, ledger: Ledger, journal: Journal
) -> None:
    entry = add_running_request(journal)
    sealed = report(1, REQUEST)
    ledger.hand_over(entry, sealed, NOW)
    item = outbox.oldest()
    assert item is not None

    ledger.settle(item, NOW)

    after = journal.get(REQUEST)
    assert after is not None
    assert after.state is State.SUBMITTED
    assert outbox.oldest() is None
    ledger.settle(item, NOW)
    assert journal.get(REQUEST) == after, "a second settlement must change nothing"


def test_the_reason_of_a_report_that_is_given_up_is_stored(
    outbox: Outbox, ledger: Ledger, journal: Journal
) -> None:
    entry = add_running_request(journal)
    sealed = report(1, REQUEST)
    ledger.hand_over(entry, sealed, NOW)
    item = outbox.oldest()
    assert item is not None

    ledger.give_up(item, NOW, "refused: 403")

    after = journal.get(REQUEST)
    assert after is not None
    assert (after.state, after.detail) == (State.REJECTED, "refused: 403")


def test_a_smaller_seal_replaces_the_queued_report(outbox: Outbox, ledger: Ledger) -> None:
    queue(ledger, 1, 10)
    item = outbox.oldest()
    assert item is not None

    outbox.replace(replace(item, body=b"less", tier=2, outcome="partial"))

    assert outbox.oldest() == replace(item, body=b"less", tier=2, outcome="partial")


def test_the_history_shows_requests_and_waiting_scheduled_reports(
    ledger: Ledger, journal: Journal, state: StateDirectory
) -> None:
    entry = add_running_request(journal)
    sealed = report(1, REQUEST)
    ledger.hand_over(entry, sealed, NOW)
    queue(ledger, 2, 10, NOW + timedelta(hours=1))

    rows = read_history(state)

    assert [(r.state, r.request_id) for r in rows] == [
        ("waiting", None),
        ("reported", str(REQUEST)),
    ]
    assert read_history(state, limit=1) == rows[:1]


def test_history_is_empty_without_a_database_and_fails_with_a_damaged_one(
    state: StateDirectory,
) -> None:
    assert read_history(state) == ()
    (state.path / "agent.db").write_bytes(b"garbage" * 1000)
    with pytest.raises(StateError, match=r"agent\.db cannot be read"):
        read_history(state)


def test_a_report_that_cannot_be_read_is_set_aside(
    outbox: Outbox, ledger: Ledger, database: Database, state: StateDirectory
) -> None:
    calls: list[int] = []
    database.on_row_quarantined = lambda: calls.append(1)
    for number in (1, 2, 3):
        queue(ledger, number, 10, NOW + timedelta(seconds=number))
    with database.transaction(Failpoint.COUNTED) as connection:
        # Each report was created in a different second, which identifies it.
        connection.execute("UPDATE outbox SET report_id = 'x' WHERE created_at LIKE '%:01+%'")
        connection.execute("UPDATE outbox SET binding_id = 'x' WHERE created_at LIKE '%:02+%'")

    outbox.quarantine_unreadable()

    item = outbox.oldest()
    assert item is not None
    assert report_numbers([item.report_id]) == [3]
    assert outbox.depth().reports == 1
    assert len(calls) == len(list(state.quarantine_path.iterdir())) == 2
    assert outbox.oldest(skip={item.report_id}) is None


def test_creation_times_are_shifted_when_the_clock_is_set(outbox: Outbox, ledger: Ledger) -> None:
    queue(ledger, 1, 10, NOW)

    outbox.shift_creation_times(timedelta(0))
    outbox.shift_creation_times(timedelta(days=30))

    assert outbox.depth().oldest_at == NOW + timedelta(days=30)
