"""The newest reports that the service has, kept to be shown again on this machine.

They are a convenience: whatever befalls them, the report is at the service and its request is over.
"""

import logging
import sqlite3
from datetime import datetime, timedelta
from typing import Final

from agent.adapters.failpoints import Failpoint
from agent.adapters.storage.database import Database
from agent.adapters.storage.outbox import Item

log = logging.getLogger(__name__)

KEPT_MAX: Final = 10
KEPT_MAX_BYTES: Final = 4 * 2**20
KEPT_MAX_AGE: Final = timedelta(days=14)

# Made with the first row: neither a start on a full disk nor an earlier version is in its way.
_TABLE: Final = """
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
    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, item: Item, now: datetime) -> None:
        """Keep a report that the service has taken, as far as there is room for it."""
        try:
            with self._database.transaction(Failpoint.REPORT_KEPT) as connection:
                connection.execute(_TABLE)
                connection.execute(
                    "INSERT OR REPLACE INTO sent VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (
                        str(item.report_id),
                        None if item.request_id is None else str(item.request_id),
                        item.kind,
                        item.outcome,
                        item.created_at.isoformat(),
                        now.isoformat(),
                        item.body,
                    ),
                )
                _drop_over_bounds(connection, now)
        except sqlite3.Error as error:
            log.warning(
                "report %s is sent, but not kept here: %s", item.report_id, error,
                extra={"report_id": item.report_id},
            )  # fmt: skip

    def drop_old(self, now: datetime) -> None:
        """Forget what is too old to be kept."""
        try:
            oldest = self._database.query("SELECT min(sent_at) FROM sent")[0][0]
            if oldest is None or oldest >= (now - KEPT_MAX_AGE).isoformat():
                return
            with self._database.transaction(Failpoint.SENT_DROPPED) as connection:
                _drop_over_bounds(connection, now)
        except sqlite3.Error as error:
            log.debug("no reports that were sent: %s", error)


def _drop_over_bounds(connection: sqlite3.Connection, now: datetime) -> None:
    """Delete what is too old, and the oldest ones over the bounds."""
    total = 0
    rows = connection.execute(
        "SELECT report_id, sent_at, length(body) AS size FROM sent ORDER BY sent_at DESC"
    ).fetchall()
    for number, row in enumerate(rows):
        total += row["size"]
        is_old = row["sent_at"] < (now - KEPT_MAX_AGE).isoformat()
        if is_old or number >= KEPT_MAX or total > KEPT_MAX_BYTES:
            connection.execute("DELETE FROM sent WHERE report_id = ?", (row["report_id"],))
