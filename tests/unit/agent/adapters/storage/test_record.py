"""Tests of the connectivity record in the agent's database."""

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.adapters.storage.database import NAME, Database
from agent.adapters.storage.record import Record, read_record
from agent.adapters.storage.state import StateDirectory
from agent.errors import StateError
from agent.wire.payloads.history import Event, Incident

START = datetime(2026, 11, 20, 19, 0, tzinfo=UTC)
UNTIL = START + timedelta(days=1)
INCIDENT = Incident("link-down", START, START + timedelta(seconds=9), 9.0, "eth0 has no link")
DAMAGE = {
    "a time out of range": "UPDATE incidents SET ended_at = 1e300",
    "no number": "UPDATE recorder SET value = 'x' WHERE name = 'since'",
    "a missing table": "DROP TABLE hours",
}


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    state = StateDirectory(tmp_path)
    state.prepare()
    return state


def write_record(state: StateDirectory) -> None:
    database = Database(state)
    values = [("since", str(START.timestamp())), ("boot-id", "one")]
    Record(database).write(incidents=[INCIDENT], events=[Event("slept", START)], values=values)
    database.close()


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_record_is_quarantined_and_a_new_one_begins(
    state: StateDirectory, damage: str
) -> None:
    write_record(state)
    with sqlite3.connect(state.path / NAME) as connection:
        connection.execute(DAMAGE[damage])
    connection.close()
    with pytest.raises(StateError, match="cannot be read"):
        read_record(state, START, UNTIL)
    database = Database(state)
    calls: list[str] = []
    database.on_row_quarantined = lambda: calls.append("quarantined")
    record = Record(database)
    record.quarantine_unreadable()
    assert calls == ["quarantined"]
    (file,) = state.quarantine_path.iterdir()
    assert "eth0 has no link" in file.read_text()
    assert record.values() == {}
    record.write(incidents=[INCIDENT], values=[("since", str(START.timestamp()))])
    assert record.history(START, UNTIL).incidents == (INCIDENT,)
    database.close()


def test_a_readable_record_is_kept(state: StateDirectory) -> None:
    write_record(state)
    database = Database(state)
    record = Record(database)
    record.quarantine_unreadable()
    assert not state.quarantine_path.exists()
    assert record.history(START, UNTIL).incidents == (INCIDENT,)
    database.close()


def test_events_of_a_newer_agent_are_left_out(state: StateDirectory) -> None:
    write_record(state)
    with sqlite3.connect(state.path / NAME) as connection:
        connection.execute("UPDATE events SET kind = 'moved'")
    connection.close()
    assert read_record(state, START, UNTIL).events == ()


def test_a_new_state_has_no_record_to_quarantine(state: StateDirectory) -> None:
    database = Database(state)
    Record(database).quarantine_unreadable()
    assert not state.quarantine_path.exists()
    database.close()
