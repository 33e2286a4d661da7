"""Sends an event for each report to the tracker: the operator's webhook of ``--tracker-url``.

An event does not contain the report. Receivers get it with `reportDetail`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from agent.wire.base import Message
from agent.wire.codec import encode
from agent.wire.vocabulary import FailureReason, Kind, Outcome, TrackerStatus
from controlplane.operation.records import record_of
from controlplane.settings import Settings
from controlplane.storage.tables import Report
from controlplane.web.observability.metrics import Metrics, TrackerResult
from controlplane.web.webhooks.sending import BATCH, Claim, backoff_s


class Event(Message):
    """The body for the webhook. All attempts for a report have the same ``event_id``, which is also
    their ``Idempotency-Key``.
    """

    event_id: str
    report_id: UUID
    request_id: UUID | None
    instance_id: UUID
    organization_id: str
    location_id: str
    kind: Kind
    outcome: Outcome
    failure_reason: FailureReason | None
    payload_hash: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TrackerOutbox:
    """The events that wait to be sent to the tracker. Their state is stored with the reports."""

    settings: Settings
    name: str = "tracker"

    def claim(self, session: Session, now: datetime) -> Sequence[Claim]:
        query = (
            select(Report)
            .where(Report.tracker_status == "pending", Report.tracker_due_at <= now)
            .order_by(Report.tracker_due_at)
            .limit(BATCH)
            .with_for_update(skip_locked=True)
        )
        claims = []
        for report in session.scalars(query):
            if report.tracker_attempts >= self.settings.tracker_attempts_max:
                # The process stopped during the last attempt, so its result is unknown.
                _settle(report, "failed", now)
                continue
            report.tracker_attempts += 1
            wait_s = self.settings.delivery_timeout_s + backoff_s(report.tracker_attempts)
            report.tracker_due_at = now + timedelta(seconds=wait_s)
            report.updated_at = now
            event = record_of(Event, report, event_id=report.tracker_event_id, report_id=report.id)
            attempt = report.tracker_attempts
            url = self.settings.tracker_url or ""
            claims.append(Claim(event.event_id, report.id, url, attempt, encode(event)))
        return claims

    def conclude(
        self, session: Session, claim: Claim, now: datetime, *, reason: str, wait_s: float = 0
    ) -> str:
        query = select(Report).where(Report.id == claim.key).with_for_update()
        report = session.scalars(query).one()
        if report.tracker_status != "pending":
            return report.tracker_status
        if not reason:
            _settle(report, "sent", now)
        elif claim.attempt >= self.settings.tracker_attempts_max:
            _settle(report, "failed", now)
        else:
            report.tracker_due_at = now + timedelta(seconds=max(backoff_s(claim.attempt), wait_s))
            report.updated_at = now
        return report.tracker_status

    def count(self, metrics: Metrics, result: TrackerResult) -> None:
        metrics.count_tracker_attempt(result)


def _settle(report: Report, status: TrackerStatus, now: datetime) -> None:
    report.tracker_status = status
    report.tracker_due_at = None
    report.updated_at = now
