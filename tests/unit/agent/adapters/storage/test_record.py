"""Tests of the connectivity record in the agent's database."""

import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from agent.adapters.storage.database import NAME, Database
from agent.adapters.storage.record import INCIDENTS_MAX, Record, read_record
from agent.adapters.storage.state import StateDirectory
from agent.errors import StateError
from agent.wire.payloads.history import Event, Incident

START = datetime(2026, 11, 20, 19, 0, tzinfo=UTC)
UNTIL = START + timedelta(days=1)
INCIDENT = Incident("link-down", START, START + timedelta(seconds=9), 9.0, "eth0 has no link")
DAMAGE_SQL = {
    "a time out of range": "UPDATE incidents SET ended_at = 1e300",
    "a value that is not a number": "UPDATE recorder SET value = 'x' WHERE name = 'since'",
    "a missing table": "DROP TABLE hours",
}


class UnreadableDatabase(Database):
    """A database on a disk that returns errors."""

    def query(self, _sql: str, _parameters: tuple[object, ...] = ()) -> list[sqlite3.Row]:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise error


def write_record(state: StateDirectory) -> None:
    database = Database(state)
    values = [("since", str(START.timestamp())), ("boot-id", "one")]
    Record(database).write(incidents=[INCIDENT], events=[Event("slept", START)], values=values)
    database.close()


@pytest.mark.parametrize("damage", DAMAGE_SQL)
def test_a_damaged_record_is_quarantined_and_a_new_one_begins(
    state: StateDirectory, damage: str
) -> None:
    write_record(state)
    with sqlite3.connect(state.path / NAME) as connection:
        connection.execute(DAMAGE_SQL[damage])
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


def test_only_open_and_recently_ended_incidents_are_kept(
    state: StateDirectory,
) -> None:
    recent = replace(INCIDENT, ended_at=UNTIL)
    open_incident = replace(INCIDENT, cause="service-down", ended_at=None)
    old = replace(INCIDENT, cause="provider-down")
    database = Database(state)
    record = Record(database)
    record.write(
        incidents=[recent, open_incident, old],
        values=[("since", str(START.timestamp()))],
        keep_since=START + timedelta(hours=1),
    )
    assert set(record.history(START, UNTIL).incidents) == {recent, open_incident}
    database.close()


def test_an_open_incident_is_kept_if_there_are_too_many_incidents(state: StateDirectory) -> None:
    open_incident = replace(INCIDENT, ended_at=None)
    times = [START + timedelta(hours=n) for n in range(INCIDENTS_MAX)]
    later = [Incident("provider-down", at, at + timedelta(minutes=1), 60.0, "") for at in times]
    database = Database(state)
    record = Record(database)
    record.write(
        incidents=[open_incident, *later],
        values=[("since", str(START.timestamp()))],
        keep_since=START,
    )
    incidents = record.history(START, later[-1].began_at).incidents
    assert incidents == (open_incident, *later[1:])
    database.close()


def test_errors_of_the_disk_are_raised(state: StateDirectory) -> None:
    """If an error were read as an empty record, the next write would delete the open incidents."""
    database = UnreadableDatabase(state)
    record = Record(database)
    for read in (record.values, record.open_incidents):
        with pytest.raises(sqlite3.OperationalError, match="disk I/O error"):
            read()
    database.close()


def test_quarantine_does_nothing_in_a_new_state_directory(state: StateDirectory) -> None:
    database = Database(state)
    record = Record(database)
    record.quarantine_unreadable()
    assert not state.quarantine_path.exists()
    assert (record.values(), record.open_incidents()) == ({}, ())
    database.close()
