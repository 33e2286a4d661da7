"""Tests that sent reports are kept for a limited time, so that `history` can print them again."""

import sqlite3
from datetime import timedelta
from uuid import UUID

import pytest

from agent.adapters import failpoints
from agent.adapters.failpoints import Failpoint
from agent.adapters.storage import sent
from agent.adapters.storage.database import Database
from agent.adapters.storage.history import find_reports, find_requests, read_history
from agent.adapters.storage.journal import Journal
from agent.adapters.storage.ledger import Ledger
from agent.adapters.storage.outbox import Outbox
from agent.adapters.storage.state import StateDirectory
from agent.rules.lifecycle import State
from tests.unit.agent.adapters.storage.test_outbox_and_ledger import (
    DAY,
    add_running_request,
    queue,
    report_numbers,
)
from tests.unit.agent.samples import NOW, report

ALL = ""
"""The beginning of every id."""


def send(ledger: Ledger, number: int, size: int, after: timedelta = timedelta(0)) -> None:
    """Queue a scheduled report of ``size`` bytes, and mark it as sent."""
    queue(ledger, number, size, NOW + after)
    item = ledger.outbox.oldest()
    assert item is not None
    ledger.settle(item, NOW + after)


def kept_numbers(state: StateDirectory) -> list[int]:
    return report_numbers([UUID(row.report_id) for row in find_reports(state, ALL)])


def test_a_sent_report_is_stored_unchanged(
    ledger: Ledger, journal: Journal, outbox: Outbox, state: StateDirectory
) -> None:
    entry = add_running_request(journal)
    sealed = report(1, entry.request_id)
    ledger.hand_over(entry, sealed, NOW)
    (waiting,) = find_reports(state, str(entry.request_id)[:8])
    item = outbox.oldest()
    assert item is not None
    ledger.settle(item, NOW + DAY)

    (sent_report,) = find_reports(state, str(entry.request_id)[:8])

    assert waiting.sent_at is None
    assert sent_report.sent_at == (NOW + DAY).isoformat()
    assert sent_report.body == waiting.body == sealed.body
    assert outbox.depth().reports == 0
    (row,) = find_requests(state, str(entry.request_id))
    assert row.state == State.SUBMITTED


def test_a_sent_scheduled_report_is_in_the_history(ledger: Ledger, state: StateDirectory) -> None:
    assert read_history(state) == ()
    send(ledger, 1, 10)

    (row,) = read_history(state)

    assert (row.state, row.request_id) == ("submitted", None)


def test_only_the_newest_sent_reports_are_kept(ledger: Ledger, state: StateDirectory) -> None:
    for number in range(1, sent.KEPT_MAX + 4):
        send(ledger, number, 10, timedelta(seconds=number))

    assert kept_numbers(state) == list(range(sent.KEPT_MAX + 3, 3, -1))


def test_sent_reports_are_bounded_in_bytes(ledger: Ledger, state: StateDirectory) -> None:
    half = sent.KEPT_MAX_BYTES // 2
    for number in (1, 2, 3):
        send(ledger, number, half, timedelta(seconds=number))
    assert kept_numbers(state) == [3, 2]
    send(ledger, 4, sent.KEPT_MAX_BYTES + 1, timedelta(seconds=4))

    assert kept_numbers(state) == []


def test_old_sent_reports_are_deleted(ledger: Ledger, state: StateDirectory) -> None:
    ledger.sent.drop_old(NOW)  # before any report was sent
    send(ledger, 1, 10)
    send(ledger, 2, 10, DAY)
    ledger.sent.drop_old(NOW + sent.KEPT_MAX_AGE)
    assert kept_numbers(state) == [2, 1]
    ledger.sent.drop_old(NOW + sent.KEPT_MAX_AGE + timedelta(seconds=1))
    assert kept_numbers(state) == [2]


def test_a_report_that_cannot_be_archived_is_still_sent(
    ledger: Ledger, journal: Journal, outbox: Outbox, monkeypatch: pytest.MonkeyPatch,
    state: StateDirectory,
) -> None:  # fmt: skip
    entry = add_running_request(journal)
    sealed = report(1, entry.request_id)
    ledger.hand_over(entry, sealed, NOW)
    item = outbox.oldest()
    assert item is not None

    def fail(failpoint: Failpoint, is_over: bool) -> None:
        if failpoint is Failpoint.REPORT_KEPT:
            raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(failpoints, "_listener", fail)
    ledger.settle(item, NOW)

    assert outbox.depth().reports == 0
    after = journal.get(entry.request_id)
    assert after is not None
    assert after.state is State.SUBMITTED
    assert find_reports(state, ALL) == ()


def test_stored_sent_reports_do_not_raise_the_schema_version(
    ledger: Ledger, database: Database, state: StateDirectory
) -> None:
    send(ledger, 1, 10)

    assert database.query("PRAGMA user_version")[0][0] == 1
    assert [row.state for row in read_history(state)] == ["submitted"]
