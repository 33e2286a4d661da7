"""The connectivity record: incidents, events and hourly figures in the agent's database.

Transactions are not durable: a power loss can undo the newest rows. The tables are created with
their first row, so that the daemon can start on a full disk.
"""

import logging
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import astuple, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from agent.adapters.failpoints import Failpoint
from agent.adapters.storage.database import Database, opened_to_read
from agent.adapters.storage.state import StateDirectory
from agent.rules.connectivity.hours import join_hours
from agent.wire.payloads import history as wire

log = logging.getLogger(__name__)

Query = Callable[[str, tuple[object, ...]], list[Any]]
"""Runs an SQL query with its parameters, and returns the rows."""

INCIDENTS_MAX: Final = 2000
EVENTS_MAX: Final = 2000
HOURS_MAX: Final = 90 * 24
TEXT_MAX: Final = 256

_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS incidents (
        cause TEXT NOT NULL,
        began_at REAL NOT NULL,
        ended_at REAL,
        downtime_s REAL NOT NULL,
        evidence TEXT NOT NULL,
        count INTEGER NOT NULL,
        PRIMARY KEY (began_at, cause)
    ) STRICT""",
    """CREATE TABLE IF NOT EXISTS events (
        at REAL NOT NULL,
        kind TEXT NOT NULL,
        detail TEXT NOT NULL
    ) STRICT""",
    """CREATE TABLE IF NOT EXISTS hours (
        at REAL PRIMARY KEY,
        heartbeats INTEGER NOT NULL,
        failures INTEGER NOT NULL,
        round_trip_p50_ms REAL,
        round_trip_p95_ms REAL,
        signal_dbm INTEGER,
        link_errors INTEGER
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS recorder (
        name TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT""",
)
"""The columns are the fields of `Incident`, `Event` and `Hour`. All times are seconds since 1970 in
UTC. ``recorder`` contains the recorder's own notes, such as ``since``, the start of the record.
Without a rowid, a new hour changes one page of the file instead of two."""
_TABLE_NAMES: Final = ("incidents", "events", "hours", "recorder")
_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC)


class Record:
    """Writes and reads the record. The methods raise sqlite3.Error, for example on a full disk."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def write(
        self,
        *,
        incidents: Iterable[wire.Incident] = (),
        events: Iterable[wire.Event] = (),
        hours: Iterable[wire.Hour] = (),
        values: Iterable[tuple[str, str]] = (),
        keep_since: datetime | None = None,
    ) -> None:
        """Add rows in one transaction, and delete rows that ended before ``keep_since``.

        ``incidents`` must contain every open incident, because stored open incidents are deleted.
        An incident replaces stored incidents that began during it, if they have the same cause and
        the same `Incident.subject`.
        ``values`` are the recorder's own notes, which replace earlier ones with the same name.
        """
        with self._database.transaction(Failpoint.RECORD_WRITTEN, durably=False) as connection:
            for table in _TABLES:
                connection.execute(table)
            connection.execute("DELETE FROM incidents WHERE ended_at IS NULL")
            for incident in incidents:
                _write_incident(connection, incident)
            connection.executemany(
                "INSERT INTO events VALUES (?, ?, ?)",
                [(event.at.timestamp(), event.kind, event.detail[:TEXT_MAX]) for event in events],
            )
            for hour in hours:
                _write_hour(connection, hour)
            connection.executemany("INSERT OR REPLACE INTO recorder VALUES (?, ?)", values)
            if keep_since is not None:
                _prune(connection, keep_since.timestamp())

    def quarantine_unreadable(self) -> None:
        """If some rows cannot be read, quarantine all rows and drop the tables.

        Raises OSError, StateError and sqlite3.OperationalError.
        """
        try:
            _history(self._database.query, _EARLIEST, _LATEST)
        except (ValueError, OverflowError, sqlite3.OperationalError) as error:
            if isinstance(error, sqlite3.OperationalError) and not _is_missing(error):
                raise
            log.error("the connectivity record cannot be read (%s) and is quarantined", error)
            self._database.quarantine_tables("record.json", _TABLE_NAMES, Failpoint.RECORD_WRITTEN)

    def values(self) -> dict[str, str]:
        """Return the recorder's own notes by name."""
        rows = self._rows("SELECT name, value FROM recorder")
        return {row["name"]: row["value"] for row in rows}

    def open_incidents(self) -> tuple[wire.Incident, ...]:
        """Return the previous run's open incidents, as if each ended when it was last stored."""
        rows = self._rows("SELECT * FROM incidents WHERE ended_at IS NULL")
        return tuple(_closed(_incident(row)) for row in rows)

    def history(self, since: datetime, until: datetime) -> wire.History:
        """Return the record between two times."""
        return _history(self._database.query, since, until)

    def _rows(self, sql: str) -> list[sqlite3.Row]:
        """Return the rows of a query. There are none if nothing has been written yet."""
        try:
            return self._database.query(sql)
        except sqlite3.OperationalError as error:
            if not _is_missing(error):
                raise
            return []


def read_record(state: StateDirectory, since: datetime, until: datetime) -> wire.History:
    """Return the record between two times, also while the daemon runs. Raises StateError.

    If no daemon runs, an open incident is returned as if it ended when it was last stored.
    """
    with opened_to_read(state) as connection:
        if connection is None:
            return wire.History(until)
        history = _history(lambda sql, v: connection.execute(sql, v).fetchall(), since, until)
    if state.holder() is not None:
        return history
    ended = (
        _closed(incident) if incident.ended_at is None else incident
        for incident in history.incidents
    )
    return replace(history, incidents=tuple(ended))


def _is_missing(error: sqlite3.OperationalError) -> bool:
    """Return whether a table or a column is missing. A full disk has a different error code."""
    return error.sqlite_errorcode == sqlite3.SQLITE_ERROR


def _write_incident(connection: sqlite3.Connection, incident: wire.Incident) -> None:
    # The evidence of a local fault begins with its subject. Interruptions have no subject.
    evidence_start = incident.subject and f"{incident.subject}{wire.SUBJECT_END}"
    began_at = incident.began_at.timestamp()
    ended_at = None if incident.ended_at is None else incident.ended_at.timestamp()
    connection.execute(
        "DELETE FROM incidents WHERE cause = ?1 AND began_at >= ?2 AND began_at <= ?3"
        " AND substr(evidence, 1, length(?4)) = ?4",
        (
            incident.cause, began_at, began_at if ended_at is None else ended_at, evidence_start,
        ),
    )  # fmt: skip
    connection.execute(
        "INSERT OR REPLACE INTO incidents VALUES (?, ?, ?, ?, ?, ?)",
        (
            incident.cause, began_at, ended_at, incident.downtime_s,
            incident.evidence[:TEXT_MAX], incident.count,
        ),
    )  # fmt: skip


def _write_hour(connection: sqlite3.Connection, hour: wire.Hour) -> None:
    """Write the figures of an hour. Add them to the figures that an earlier run has written."""
    at = (hour.at.timestamp(),)
    for row in connection.execute("SELECT * FROM hours WHERE at = ?", at).fetchall():
        hour = join_hours(_hour(row), hour)
    connection.execute(
        "INSERT OR REPLACE INTO hours VALUES (?, ?, ?, ?, ?, ?, ?)", (*at, *astuple(hour)[1:])
    )


def _prune(connection: sqlite3.Connection, oldest: float) -> None:
    """Delete rows from before ``oldest``, and the oldest rows above the maximum of each table.

    Open incidents count as new.
    """
    for table, column, maximum in (
        ("incidents", "coalesce(ended_at, 9e99)", INCIDENTS_MAX),
        ("events", "at", EVENTS_MAX),
        ("hours", "at", HOURS_MAX),
    ):
        connection.execute(
            f"DELETE FROM {table} WHERE {column} < ?1 OR {column} <"  # noqa: S608 - no values
            f" (SELECT {column} FROM {table} ORDER BY {column} DESC LIMIT 1 OFFSET ?2)",
            (oldest, maximum - 1),  # the offset of the oldest row that is kept
        )


def _history(query: Query, since: datetime, until: datetime) -> wire.History:
    tables = {row[0] for row in query("SELECT name FROM sqlite_schema", ())}
    if "recorder" not in tables:
        return wire.History(until)
    bounds = (since.timestamp(), until.timestamp())
    first = query("SELECT value FROM recorder WHERE name = 'since'", ())
    began_at = _time(float(first[0][0])) if first else until
    return wire.History(
        since=max(since, began_at),
        incidents=tuple(
            _incident(row)
            for row in query(
                "SELECT * FROM incidents WHERE coalesce(ended_at, ?2) >= ?1 AND began_at <= ?2"
                " ORDER BY began_at",
                bounds,
            )
            if row[0] in wire.CAUSES
        ),
        events=tuple(
            wire.Event(row[1], _time(row[0]), row[2])
            for row in query("SELECT * FROM events WHERE at BETWEEN ? AND ? ORDER BY at", bounds)
            if row[1] in wire.EVENT_KINDS
        ),
        hours=tuple(
            _hour(row)
            for row in query("SELECT * FROM hours WHERE at BETWEEN ? AND ? ORDER BY at", bounds)
        ),
    )


def _incident(row: Any) -> wire.Incident:
    cause, began_at, ended_at, downtime_s, evidence, count = row
    end = None if ended_at is None else _time(ended_at)
    return wire.Incident(cause, _time(began_at), end, downtime_s, evidence, count)


def _hour(row: Any) -> wire.Hour:
    at, *figures = row
    return wire.Hour(_time(at), *figures)


def _closed(incident: wire.Incident) -> wire.Incident:
    """Return an open incident with an end: the time at which it was last stored.

    The downtime of an open incident is the time from its beginning until it was last stored.
    """
    return replace(incident, ended_at=incident.began_at + timedelta(seconds=incident.downtime_s))


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
