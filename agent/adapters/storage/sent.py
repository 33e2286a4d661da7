"""The newest sent reports, which this machine can display again.

The loss of these copies is harmless, because the service has the reports.
"""

import logging
import sqlite3
from datetime import datetime, timedelta
from typing import Final

from agent.adapters.failpoints import Failpoint
from agent.adapters.storage.database import Database
from agent.adapters.storage.outbox import WaitingReport

log = logging.getLogger(__name__)

KEPT_MAX: Final = 10
KEPT_MAX_BYTES: Final = 4 * 2**20
KEPT_MAX_AGE: Final = timedelta(days=14)

# The table is created with its first row, so that the daemon can start on a full disk.
SENT_TABLE: Final = """
CREATE TABLE IF NOT EXISTS sent (
    report_id TEXT PRIMARY KEY,
    request_id TEXT,
    kind TEXT NOT NULL,
    outcome TEXT NOT NULL,
    created_at TEXT NOT NULL,
    sent_at TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT
"""


class SentReports:
    """The table of sent reports."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, report: WaitingReport, now: datetime) -> None:
        """Store a report that the service has accepted. A failure is only logged."""
        try:
            with self._database.transaction(Failpoint.REPORT_KEPT) as connection:
                connection.execute(SENT_TABLE)
                connection.execute(
                    "INSERT OR REPLACE INTO sent VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (
                        report.report_id, report.request_id, report.kind, report.outcome,
                        report.created_at, now, report.body,
                    ),
                )  # fmt: skip
                _drop_over_bounds(connection, now)
        except sqlite3.Error as error:
            log.warning(
                "report %s was sent, but its copy cannot be stored: %s", report.report_id, error
            )

    def drop_old(self, now: datetime) -> None:
        """Delete reports that are too old."""
        try:
            oldest = self._database.query("SELECT min(sent_at) FROM sent")[0][0]
            if oldest is None or oldest >= (now - KEPT_MAX_AGE).isoformat():
                return
            with self._database.transaction(Failpoint.SENT_DROPPED) as connection:
                _drop_over_bounds(connection, now)
        except sqlite3.Error as error:
            log.debug("the sent reports cannot be read: %s", error)


def _drop_over_bounds(connection: sqlite3.Connection, now: datetime) -> None:
    """Delete the reports that are too old, and the oldest of the other reports until their number
    and total size are within the limits.
    """
    total = 0
    rows = connection.execute(
        "SELECT report_id, sent_at, length(body) AS size FROM sent ORDER BY sent_at DESC"
    ).fetchall()
    for number, row in enumerate(rows):
        total += row["size"]
        is_old = row["sent_at"] < (now - KEPT_MAX_AGE).isoformat()
        if is_old or number >= KEPT_MAX or total > KEPT_MAX_BYTES:
            connection.execute("DELETE FROM sent WHERE report_id = ?", (row["report_id"],))
