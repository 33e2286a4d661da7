"""The outbox: sealed reports that the service has not accepted yet. Size and age are limited."""

import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from agent.adapters.failpoints import Failpoint
from agent.adapters.storage.database import Database
from agent.rules.reports.sealed_report import SealedReport


@dataclass(frozen=True, slots=True)
class WaitingReport(SealedReport):
    """A report in the outbox."""

    created_at: datetime


@dataclass(frozen=True, slots=True)
class OutboxDepth:
    """Number and total size of the waiting reports, and the creation time of the oldest report."""

    reports: int
    size_bytes: int
    oldest_at: datetime | None


class Outbox:
    """The table of reports that wait to be sent."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_within(
        self, connection: sqlite3.Connection, report: SealedReport, now: datetime
    ) -> None:
        """Queue a report in the caller's transaction. Does nothing if its id is already queued."""
        connection.execute(
            "INSERT INTO outbox VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (
                report.report_id, report.request_id, report.binding_id, report.kind,
                report.outcome, report.tier, now, report.body,
            ),
        )  # fmt: skip

    def quarantine_unreadable(self) -> None:
        """Move every unreadable row to the quarantine."""
        for row in self._database.query("SELECT report_id FROM outbox"):
            self._get(row["report_id"])

    def oldest(self, skip: Collection[UUID] = ()) -> WaitingReport | None:
        """Return the oldest report that is not in ``skip``, or None."""
        for row in self._database.query("SELECT report_id FROM outbox ORDER BY created_at"):
            if (report := self._get(row["report_id"])) is not None and report.report_id not in skip:
                return report
        return None

    def shift_creation_times(self, by: timedelta) -> None:
        """Add ``by`` to the creation time of every report.

        After the clock was set forward, this keeps the reports from exceeding the age limit.
        """
        if not by:
            return
        with self._database.transaction(Failpoint.CREATION_TIMES_SHIFTED) as connection:
            for row in connection.execute("SELECT report_id, created_at FROM outbox").fetchall():
                created_at = datetime.fromisoformat(row["created_at"]) + by
                connection.execute(
                    "UPDATE outbox SET created_at = ? WHERE report_id = ?",
                    (created_at, row["report_id"]),
                )

    def replace(self, report: SealedReport) -> None:
        """Replace a report by a newly sealed version of it."""
        with self._database.transaction(Failpoint.REPORT_RESEALED) as connection:
            connection.execute(
                "UPDATE outbox SET body = ?, tier = ?, outcome = ? WHERE report_id = ?",
                (report.body, report.tier, report.outcome, report.report_id),
            )

    def remove_within(self, connection: sqlite3.Connection, report_id: UUID) -> None:
        connection.execute("DELETE FROM outbox WHERE report_id = ?", (report_id,))

    def depth(self) -> OutboxDepth:
        row = self._database.query(
            "SELECT count(*), coalesce(sum(length(body)), 0), min(created_at) FROM outbox"
        )[0]
        return OutboxDepth(row[0], row[1], datetime.fromisoformat(row[2]) if row[2] else None)

    def has_room(self, size_bytes: int, max_bytes: int) -> bool:
        """Return whether a requested report fits into the outbox next to other requested reports.

        Scheduled reports do not count, because they are dropped first. Without other requested
        reports, a report of any size fits.
        """
        rows = self._database.query(
            "SELECT coalesce(sum(length(body)), 0) FROM outbox WHERE request_id IS NOT NULL"
        )
        waiting_bytes = int(rows[0][0])
        return not waiting_bytes or waiting_bytes + size_bytes <= max_bytes

    def over_bounds(
        self, max_bytes: int, max_age: timedelta, now: datetime
    ) -> tuple[WaitingReport, ...]:
        """Return the reports to drop so that the outbox is within its limits.

        These are all reports that are too old. If the remaining reports together exceed
        ``max_bytes``, scheduled reports are dropped as well, and then requested reports. In both
        groups, the oldest reports are dropped first.
        """
        rows = self._database.query(
            "SELECT report_id, created_at, length(body) AS size FROM outbox"
            " ORDER BY request_id IS NOT NULL, created_at"
        )
        cutoff = (now - max_age).isoformat()
        to_drop = [row for row in rows if row["created_at"] < cutoff]
        recent_rows = [row for row in rows if row["created_at"] >= cutoff]
        total = sum(row["size"] for row in recent_rows)
        for row in recent_rows:
            if total <= max_bytes:
                break
            to_drop.append(row)
            total -= row["size"]
        reports = (self._get(row["report_id"]) for row in to_drop)
        return tuple(report for report in reports if report is not None)

    def _get(self, report_id: str) -> WaitingReport | None:
        """Return a report. Quarantine a row that cannot be read, and return None."""
        row = self._database.query("SELECT * FROM outbox WHERE report_id IS ?", (report_id,))[0]
        return self._database.read_or_quarantine("outbox", row, WaitingReport)
