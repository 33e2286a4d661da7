"""Reads the journal, the outbox and the sent reports, even while the daemon runs."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final

from agent.adapters.storage.database import opened_to_read
from agent.adapters.storage.sent import SENT_TABLE
from agent.adapters.storage.state import StateDirectory
from agent.redaction.known import redact

LIMIT: Final = 200
"""Default maximum number of rows."""
MATCHES_MAX: Final = 20
"""Maximum number of reports or requests that are returned for the beginning of an id."""
_HAS_SENT: Final = "SELECT 1 FROM sqlite_schema WHERE name = 'sent'"

_REQUESTS: Final = """
SELECT received_at AS at, kind, request_id, state, attempt, report_id, outcome, detail
    FROM requests
"""
_HISTORY: Final = f"""
{_REQUESTS}
UNION ALL
SELECT created_at, kind, request_id, 'waiting', 0, report_id, outcome, 'scheduled'
    FROM outbox WHERE request_id IS NULL
UNION ALL
SELECT created_at, kind, request_id, 'submitted', 0, report_id, outcome, NULL
    FROM sent WHERE request_id IS NULL
ORDER BY at DESC LIMIT ?
"""  # noqa: S608 - a constant of this module
_ID_MATCHES: Final = "(report_id LIKE :start || '%' OR request_id LIKE :start || '%')"
_COLUMNS: Final = "report_id, request_id, kind, outcome, created_at"
_REPORTS: Final = f"""
SELECT {_COLUMNS}, NULL AS sent_at, body FROM outbox WHERE {_ID_MATCHES}
UNION ALL
SELECT {_COLUMNS}, sent_at, body FROM sent WHERE {_ID_MATCHES}
ORDER BY created_at DESC LIMIT {MATCHES_MAX}
"""  # noqa: S608 - constants of this module


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One request or one scheduled report.

    Args:
        at: when the request was received or the scheduled report was created, ISO 8601 in UTC.
        state: the state of the request (rules.lifecycle). A scheduled report has the state
            ``waiting`` until it is sent, and then ``submitted``.
        attempt: the number of collections for the request; 0 for a scheduled report.
        detail: why the request or its report was refused or dropped. For a scheduled report that
            is not sent yet, ``scheduled``.
    """

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
    """A sealed report in the outbox, or a sent report. ``sent_at`` is None in the outbox."""

    report_id: str
    request_id: str | None
    kind: str
    outcome: str
    created_at: str
    sent_at: str | None
    body: bytes


def read_history(state: StateDirectory, limit: int = LIMIT) -> tuple[HistoryRow, ...]:
    """Return at most ``limit`` rows, newest first. Raises StateError."""
    rows = _select(state, _HISTORY, (limit,))
    return tuple(_without_secrets(HistoryRow(*row)) for row in rows)


def find_reports(state: StateDirectory, start: str) -> tuple[KeptReport, ...]:
    """Return up to MATCHES_MAX reports, newest first. Raises StateError.

    ``start`` is the beginning of the report id, or of the id of its request.
    """
    return tuple(KeptReport(*row) for row in _select(state, _REPORTS, {"start": start}))


def read_bodies(state: StateDirectory, report_ids: Collection[str]) -> dict[str, bytes]:
    """Return the sealed bodies of the reports that are still stored, by id. Raises StateError."""
    placeholders = ", ".join("?" * len(report_ids))
    query = " UNION ALL ".join(
        f"SELECT report_id, body FROM {table} WHERE report_id IN ({placeholders})"  # noqa: S608 - no values
        for table in ("outbox", "sent")
    )
    return dict(_select(state, query, (*report_ids, *report_ids)))


def find_requests(state: StateDirectory, start: str) -> tuple[HistoryRow, ...]:
    """Return up to MATCHES_MAX requests, newest first. Raises StateError.

    ``start`` is the beginning of the request id, or of the id of its report.
    """
    query = f"{_REQUESTS} WHERE {_ID_MATCHES} ORDER BY received_at DESC LIMIT {MATCHES_MAX}"
    rows = _select(state, query, {"start": start})
    return tuple(_without_secrets(HistoryRow(*row)) for row in rows)


def _select(
    state: StateDirectory, query: str, parameters: tuple[object, ...] | dict[str, object]
) -> list[tuple[Any, ...]]:
    """Return the rows of a query. There are no rows before the daemon has created the tables."""
    with opened_to_read(state) as connection:
        if connection is None or not connection.execute("PRAGMA user_version").fetchone()[0]:
            return []
        if not connection.execute(_HAS_SENT).fetchone():
            # The table does not exist before the first report is sent. Use an empty one.
            connection.execute(SENT_TABLE.replace("CREATE", "CREATE TEMP", 1))
        return connection.execute(query, parameters).fetchall()


def _without_secrets(row: HistoryRow) -> HistoryRow:
    return row if row.detail is None else replace(row, detail=redact(row.detail))
