"""Transactions that change a request and its report together."""

from datetime import datetime, timedelta

from agent.adapters.failpoints import Failpoint
from agent.adapters.storage.database import Database
from agent.adapters.storage.journal import Entry, Journal
from agent.adapters.storage.outbox import Outbox, WaitingReport
from agent.adapters.storage.sent import SentReports
from agent.rules.lifecycle import FINAL, Event
from agent.rules.reports.sealed_report import SealedReport

DROPPED_COUNTER = "reports_dropped"


class Ledger:
    """The journal, the outbox and the sent reports."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.journal = Journal(database)
        self.outbox = Outbox(database)
        self.sent = SentReports(database)

    def hand_over(self, entry: Entry | None, report: SealedReport, now: datetime) -> None:
        """Queue a report, and mark its request as REPORTED.

        ``entry`` is the request. It is None for a scheduled report.
        """
        with self._database.transaction(Failpoint.REPORT_HANDED_OVER) as connection:
            if entry is not None:
                self.journal.move_within(
                    connection,
                    entry,
                    Event.REPORT_SEALED,
                    now,
                    report_id=report.report_id,
                    outcome=report.outcome,
                )
            self.outbox.add_within(connection, report, now)

    def settle(self, report: WaitingReport, now: datetime) -> None:
        """Finish the request of a report that the service has accepted.

        The report is removed from the outbox. A copy is kept for display on this machine.
        """
        self._close(report, Event.REPORT_ACCEPTED, Failpoint.REPORT_SETTLED, now)
        self.sent.keep(report, now)

    def give_up(self, report: WaitingReport, now: datetime, why: str) -> None:
        """Drop a report that cannot be sent. Count it, and write the reason into the journal."""
        self._close(report, Event.REFUSED, Failpoint.REPORT_GIVEN_UP, now, why)
        self._database.increase_counter(DROPPED_COUNTER)

    def drop_over_bounds(
        self, max_bytes: int, max_age: timedelta, now: datetime
    ) -> tuple[WaitingReport, ...]:
        """Drop the reports that exceed the outbox's limits, and return them."""
        dropped_reports = self.outbox.over_bounds(max_bytes, max_age, now)
        for report in dropped_reports:
            self.give_up(report, now, "dropped: too old, or the outbox is full")
        return dropped_reports

    def _close(
        self,
        report: WaitingReport,
        event: Event,
        failpoint: Failpoint,
        now: datetime,
        detail: str | None = None,
    ) -> None:
        entry = None if report.request_id is None else self.journal.get(report.request_id)
        with self._database.transaction(failpoint) as connection:
            if entry is not None and entry.state not in FINAL:
                self.journal.move_within(
                    connection, entry, event, now, outcome=report.outcome, detail=detail
                )
            self.outbox.remove_within(connection, report.report_id)
