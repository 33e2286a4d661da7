"""Reads journal, outbox and sent reports beside a running daemon, without writing anything."""

import contextlib
import sqlite3
from collections.abc import Iterator
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
{sent}
ORDER BY at DESC LIMIT ?
"""
_SENT_QUERY: Final = """
UNION ALL
SELECT created_at, kind, request_id, 'submitted', 0, report_id, outcome, NULL
    FROM sent WHERE request_id IS NULL
"""
_NAMED: Final = "(report_id LIKE :start || '%' OR request_id LIKE :start || '%')"
_COLUMNS: Final = "report_id, request_id, kind, outcome, created_at"


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One request, or one scheduled report. ``at`` is ISO 8601 in UTC."""

    at: str
    kind: str
    request_id: str | None
    state: str
    attempt: int
    report_id: str | None
    outcome: str | None
    detail: str | None


@dataclass(frozen=True, slots=True)
class KeptReport:
    """A sealed report that is still here. ``sent_at`` is None while it waits."""

    report_id: str
    request_id: str | None
    kind: str
    outcome: str
    created_at: str
    sent_at: str | None
    body: bytes


def read_history(state: StateDirectory, limit: int = LIMIT) -> tuple[HistoryRow, ...]:
    """Return the newest rows, newest first. Raises StateError."""
    with _opened(state) as connection:
        if connection is None:
            return ()
        query = _QUERY.format(sent=_SENT_QUERY if _has_sent(connection) else "")
        rows = connection.execute(query, (limit,)).fetchall()
        return tuple(_without_secrets(HistoryRow(*row)) for row in rows)


def find_reports(state: StateDirectory, start: str) -> tuple[KeptReport, ...]:
    """Return the reports whose id, or whose request's, begins with ``start``, newest first.

    Raises StateError.
    """
    with _opened(state) as connection:
        if connection is None:
            return ()
        query = f"SELECT {_COLUMNS}, NULL AS sent_at, body FROM outbox WHERE {_NAMED}"  # noqa: S608
        if _has_sent(connection):
            query += f" UNION ALL SELECT {_COLUMNS}, sent_at, body FROM sent WHERE {_NAMED}"  # noqa: S608
        rows = connection.execute(f"{query} ORDER BY created_at DESC LIMIT 20", {"start": start})
        return tuple(KeptReport(*row) for row in rows)


def find_requests(state: StateDirectory, start: str) -> tuple[HistoryRow, ...]:
    """Return the journal's rows with an id that begins with ``start``. Raises StateError."""
    with _opened(state) as connection:
        if connection is None:
            return ()
        query = (
            "SELECT received_at, kind, request_id, state, attempt, report_id, outcome, detail"  # noqa: S608
            f" FROM requests WHERE {_NAMED} ORDER BY received_at DESC LIMIT 20"
        )
        rows = connection.execute(query, {"start": start})
        return tuple(_without_secrets(HistoryRow(*row)) for row in rows)


@contextlib.contextmanager
def _opened(state: StateDirectory) -> Iterator[sqlite3.Connection | None]:
    """Yield a connection, or None where there is nothing yet. Raises StateError."""
    path = state.path / NAME
    try:
        state.require_own(*FILES)
        if not path.exists():
            yield None
            return
        with contextlib.closing(connect_to_read(state)) as connection:
            # 0: the daemon is making the tables just now.
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            yield connection if version else None
    except (sqlite3.Error, OSError) as error:
        raise StateError(f"{path} cannot be read: {error}") from None


def _has_sent(connection: sqlite3.Connection) -> bool:
    query = "SELECT 1 FROM sqlite_schema WHERE name = 'sent'"
    return connection.execute(query).fetchone() is not None


def _without_secrets(row: HistoryRow) -> HistoryRow:
    return row if row.detail is None else replace(row, detail=redact(row.detail))
