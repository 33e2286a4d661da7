"""Tells a webhook of each report, a bounded number of times.

What is sent names the report and does not hold it; who wants it calls `reportDetail`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import httpx2
from sqlalchemy import select
from sqlalchemy.orm import Session

from agent.wire.base import Message
from agent.wire.codec import encode
from agent.wire.vocabulary import FailureReason, Kind, Outcome, TrackerStatus
from controlplane.settings import Settings
from controlplane.storage.tables import Report
from controlplane.web.core import Core
from controlplane.web.observability.metrics import Metrics, TrackerResult
from controlplane.web.webhooks.sending import BATCH, Claim, backoff_s, send_due


class Event(Message):
    """The webhook's body. ``event_id`` is the same at each attempt (also ``Idempotency-Key``)."""

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


async def report_due(core: Core, client: httpx2.AsyncClient) -> int:
    """Tell of what is due. Returns how many were tried."""
    return await send_due(core, client, Tracker(core.settings))


@dataclass(frozen=True, slots=True)
class Tracker:
    """The outbox that the table of reports is."""

    settings: Settings
    name: str = "tracker"

    @property
    def url(self) -> str:
        return self.settings.tracker_url or ""

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
                _settle(report, "failed", now)  # the process ended during the last attempt
                continue
            report.tracker_attempts += 1
            wait_s = self.settings.tracker_timeout_s + backoff_s(report.tracker_attempts)
            report.tracker_due_at = now + timedelta(seconds=wait_s)
            report.updated_at = now
            event = _event(report)
            attempt = report.tracker_attempts
            claims.append(Claim(event.event_id, report.id, attempt, encode(event)))
        return claims

    def conclude(self, session: Session, claim: Claim, now: datetime, *, is_sent: bool) -> str:
        query = select(Report).where(Report.id == claim.key).with_for_update()
        report = session.scalars(query).one()
        if report.tracker_status != "pending":
            return report.tracker_status
        if is_sent:
            _settle(report, "sent", now)
        elif claim.attempt >= self.settings.tracker_attempts_max:
            _settle(report, "failed", now)
        else:
            report.tracker_due_at = now + timedelta(seconds=backoff_s(claim.attempt))
            report.updated_at = now
        return report.tracker_status

    def count(self, metrics: Metrics, result: TrackerResult) -> None:
        metrics.tracked(result)


def _event(report: Report) -> Event:
    return Event(
        event_id=report.tracker_event_id,
        report_id=report.id,
        request_id=report.request_id,
        instance_id=report.instance_id,
        organization_id=report.organization_id,
        location_id=report.location_id,
        kind=report.kind,
        outcome=report.outcome,
        failure_reason=report.failure_reason,
        payload_hash=report.payload_hash,
        created_at=report.created_at,
    )


def _settle(report: Report, status: TrackerStatus, now: datetime) -> None:
    report.tracker_status = status
    report.tracker_due_at = None
    report.updated_at = now
