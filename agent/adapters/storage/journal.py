"""The journal: every request and its state (rules.lifecycle).

The row of a finished request is kept for some time, so that the agent recognizes a request that the
service delivers again. Such a row is called a tombstone. Methods whose names end with `_within`
write in the caller's transaction. All other methods write in transactions of their own.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, cast
from uuid import UUID

from agent.adapters.failpoints import Failpoint
from agent.adapters.storage.database import Database
from agent.rules.lifecycle import FINAL, Event, State, advance
from agent.wire.codec import read_row
from agent.wire.device_operations import Command
from agent.wire.vocabulary import Kind, Outcome

TOMBSTONE_AGE: Final = timedelta(days=90)
TOMBSTONES_MAX: Final = 10_000
PRUNE_INTERVAL_ROWS: Final = 500
"""Number of new requests after which old tombstones are deleted."""

_FINAL_STATES: Final = ", ".join(f"'{state}'" for state in sorted(FINAL))
"""The final states in SQL."""

REPEATED_EVENTS: Final = frozenset({Event.ACCEPTED})
"""Events that a power loss can undo. The agent then repeats the call to the service, which is
harmless."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One request.

    ``attempt`` is the number of its collections. If the agent was stopped cleanly during a
    collection, this collection is not counted. ``running_acknowledged`` is True if the service has
    accepted the acknowledgement ``running``. ``detail`` is the reason why the request or its report
    was refused or dropped.
    """

    request_id: UUID
    binding_id: UUID
    kind: Kind
    expires_at: datetime
    state: State
    attempt: int
    running_acknowledged: bool
    received_at: datetime
    updated_at: datetime
    report_id: UUID | None = None
    outcome: Outcome | None = None
    detail: str | None = None


class Journal:
    """The table of requests."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._added_count = 0

    def add(self, command: Command, now: datetime) -> bool:
        """Store a new request. If it is already stored, change nothing and return False."""
        with self._database.transaction(Failpoint.REQUEST_ADDED) as connection:
            cursor = connection.execute(
                "INSERT INTO requests"
                " (request_id, binding_id, kind, expires_at, state, received_at, updated_at)"
                " VALUES (:request_id, :binding_id, :kind, :expires_at, :state, :now, :now)"
                " ON CONFLICT DO NOTHING",
                {**dict(command), "state": State.RECEIVED, "now": now},
            )
            is_new = cursor.rowcount == 1
        self._added_count += is_new
        if is_new and self._added_count % PRUNE_INTERVAL_ROWS == 0:
            self.prune(now)
        return is_new

    def get(self, request_id: UUID) -> Entry | None:
        rows = self._select("WHERE request_id = ?", (request_id,))
        return next(rows, None)

    def in_state(self, state: State) -> tuple[Entry, ...]:
        """Return the entries in ``state``, oldest first."""
        return tuple(self._select("WHERE state = ? ORDER BY received_at", (state,)))

    def kinds_in(self, state: State) -> tuple[Kind, ...]:
        """Return the kinds of the requests in ``state``, ordered by their oldest request.

        Rows with an unknown kind are left out, because they cannot be read.
        """
        rows = self._database.query(
            "SELECT kind FROM requests WHERE state = ? AND kind IN ('network', 'application')"
            " GROUP BY kind ORDER BY min(received_at)",
            (state,),
        )
        return tuple(cast("Kind", row["kind"]) for row in rows)

    def unfinished(self) -> tuple[Entry, ...]:
        """Return every unfinished entry, oldest first. Rows in unknown states are quarantined."""
        return tuple(self._select(f"WHERE state NOT IN ({_FINAL_STATES}) ORDER BY received_at"))

    def count_unfinished(self) -> int:
        """Return the number of unfinished requests."""
        sql = f"SELECT count(*) FROM requests WHERE state NOT IN ({_FINAL_STATES})"  # noqa: S608
        return int(self._database.query(sql)[0][0])

    def move(self, entry: Entry, event: Event, now: datetime, detail: str | None = None) -> Entry:
        """Apply an event to a request, and return the new entry."""
        return self.move_all((entry,), event, now, detail)[0]

    def move_all(
        self, entries: Sequence[Entry], event: Event, now: datetime, detail: str | None = None
    ) -> tuple[Entry, ...]:
        """Apply an event to several requests in one transaction, and return the new entries."""
        if not entries:
            return ()
        durably = event not in REPEATED_EVENTS
        with self._database.transaction(Failpoint.REQUEST_MOVED, durably=durably) as connection:
            return tuple(
                self.move_within(connection, entry, event, now, detail=detail) for entry in entries
            )

    def move_within(
        self,
        connection: sqlite3.Connection,
        entry: Entry,
        event: Event,
        now: datetime,
        *,
        report_id: UUID | None = None,
        outcome: Outcome | None = None,
        detail: str | None = None,
    ) -> Entry:
        """Like `move`, inside the caller's transaction."""
        attempt = entry.attempt + {Event.STARTED: 1, Event.STOPPED: -1}.get(event, 0)
        (row,) = connection.execute(
            "UPDATE requests SET state = ?, attempt = ?, updated_at = ?,"
            " report_id = coalesce(?, report_id), outcome = coalesce(?, outcome),"
            " detail = coalesce(?, detail) WHERE request_id = ? RETURNING *",
            (
                advance(entry.state, event), attempt, now, report_id, outcome, detail,
                entry.request_id,
            ),
        ).fetchall()  # fmt: skip
        return read_row(dict(row), Entry)

    def note_running_acknowledged(self, request_id: UUID) -> None:
        """Note that the service has accepted the acknowledgement ``running``.

        If a power loss undoes this, the acknowledgement is repeated.
        """
        with self._database.transaction(Failpoint.RUNNING_NOTED, durably=False) as connection:
            connection.execute(
                "UPDATE requests SET running_acknowledged = 1 WHERE request_id = ?",
                (request_id,),
            )

    def prune(self, now: datetime) -> None:
        """Delete the tombstones that exceed the limits of age and number."""
        with self._database.transaction(Failpoint.JOURNAL_PRUNED) as connection:
            connection.execute(
                f"DELETE FROM requests WHERE state IN ({_FINAL_STATES}) AND (updated_at < ?"  # noqa: S608
                " OR request_id NOT IN"
                " (SELECT request_id FROM requests ORDER BY received_at DESC LIMIT ?))",
                (now - TOMBSTONE_AGE, TOMBSTONES_MAX),
            )

    def _select(self, clause: str, parameters: tuple[object, ...] = ()) -> Iterator[Entry]:
        for row in self._database.query(f"SELECT * FROM requests {clause}", parameters):  # noqa: S608
            if (entry := self._database.read_or_quarantine("requests", row, Entry)) is not None:
                yield entry
