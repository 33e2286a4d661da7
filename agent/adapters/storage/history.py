"""Reads journal and outbox beside a running daemon, without writing anything."""

import sqlite3
from dataclasses import dataclass, replace
from typing import Final

from agent.adapters.storage.database import FILES, NAME, connect_to_read
from agent.adapters.storage.state import StateDirectory
from agent.errors import StateError
from agent.redaction.known import redact

LIMIT: Final = 200

_QUERY: Final = """
SELECT received_at AS at, kind, request_id, state, attempt, report_id, outcome, detail
    FROM requests
UNION ALL
SELECT created_at, kind, request_id, 'waiting', 0, report_id, outcome, 'scheduled'
    FROM outbox WHERE request_id IS NULL
ORDER BY at DESC LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One request, or one scheduled report that waits. ``at`` is ISO 8601 in UTC."""

    at: str
    kind: str
    request_id: str | None
    state: str
    attempt: int
    report_id: str | None
    outcome: str | None
    detail: str | None


def read_history(state: StateDirectory, limit: int = LIMIT) -> tuple[HistoryRow, ...]:
    """Return the newest rows, newest first. Raises StateError."""
    path = state.path / NAME
    try:
        state.require_own(*FILES)
        if not path.exists():
            return ()
        connection = connect_to_read(state)
        try:
            if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
                return ()  # the daemon is making the tables just now
            rows = connection.execute(_QUERY, (limit,))
            return tuple(_without_secrets(HistoryRow(*row)) for row in rows)
        finally:
            connection.close()
    except (sqlite3.Error, OSError) as error:
        raise StateError(f"{path} cannot be read: {error}") from None


def _without_secrets(row: HistoryRow) -> HistoryRow:
    return row if row.detail is None else replace(row, detail=redact(row.detail))
