"""Tests of the stored times at which API keys were last used."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from controlplane.accounts.keys.key_store import note_uses

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


class RecordingSession:
    """A session that records the rows of a statement."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def connection(self) -> "RecordingSession":
        return self

    def execute(self, _statement: Any, rows: list[dict[str, Any]]) -> None:
        self.rows = rows


def test_processes_lock_keys_in_the_same_order() -> None:
    """A statement locks rows in the order of its parameters. Processes that lock the same rows in
    different orders can deadlock.
    """
    session: Any = RecordingSession()
    note_uses(session, {UUID(int=number): NOW for number in (3, 1, 2)})
    assert [row["key"].int for row in session.rows] == [1, 2, 3]
