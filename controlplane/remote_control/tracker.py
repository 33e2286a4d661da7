"""Tells a webhook of each report, a bounded number of times.

A report is claimed before it is sent: the attempt is counted and its next turn fixed in one
transaction. So neither a crash nor a second process on the same database sends without end.
What is sent names the report and does not hold it; who wants it calls `reportDetail`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import httpx2
from sqlalchemy import select
from sqlalchemy.orm import Session

from agent.wire.addresses import is_loopback_url
from agent.wire.base import Message
from agent.wire.codec import encode
from agent.wire.vocabulary import FailureReason, Kind, Outcome, TrackerStatus
from controlplane.core import Core
from controlplane.settings import Settings
from controlplane.storage.tables import Report

log = logging.getLogger("controlplane.remote_control.tracker")
BATCH = 8
BACKOFF_FIRST_S = 5
BACKOFF_MAX_S = 600


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


@dataclass(frozen=True, slots=True)
class Claim:
    event: Event
    attempt: int


@asynccontextmanager
async def tracker_client(settings: Settings) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(
        timeout=settings.tracker_timeout_s,
        follow_redirects=False,
        # The environment's proxy could not reach this machine's own loopback.
        trust_env=not is_loopback_url(settings.tracker_url or ""),
    ) as client:
        yield client


async def report_due(core: Core, client: httpx2.AsyncClient) -> int:
    """Send what is due, at most ``BATCH``. Returns how many were tried."""
    now = core.clock()
    claims = await core.write(lambda session: claim_due(session, core.settings, now))
    async with asyncio.TaskGroup() as tasks:
        for claim in claims:
            tasks.create_task(_send(core, client, claim))
    return len(claims)


def claim_due(session: Session, settings: Settings, now: datetime) -> Sequence[Claim]:
    query = (
        select(Report)
        .where(Report.tracker_status == "pending", Report.tracker_due_at <= now)
        .order_by(Report.tracker_due_at)
        .limit(BATCH)
        .with_for_update(skip_locked=True)
    )
    claims = []
    for report in session.scalars(query):
        if report.tracker_attempts >= settings.tracker_attempts_max:
            _settle(report, "failed", now)  # the process ended during the last attempt
            continue
        report.tracker_attempts += 1
        wait_s = settings.tracker_timeout_s + backoff_s(report.tracker_attempts)
        report.tracker_due_at = now + timedelta(seconds=wait_s)
        report.updated_at = now
        claims.append(Claim(_event(report), report.tracker_attempts))
    return claims


def backoff_s(attempt: int) -> float:
    """Return the wait after the ``attempt``-th failure: 5, 10, 20 s and so on to 10 minutes."""
    return float(min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2 ** (attempt - 1)))


def conclude(
    session: Session, settings: Settings, claim: Claim, is_sent: bool, now: datetime
) -> TrackerStatus:
    """Write down how the attempt ended. Returns the report's tracker status from now on."""
    query = select(Report).where(Report.id == claim.event.report_id).with_for_update()
    report = session.scalars(query).one()
    if report.tracker_status != "pending":
        return report.tracker_status
    if is_sent:
        _settle(report, "sent", now)
    elif claim.attempt >= settings.tracker_attempts_max:
        _settle(report, "failed", now)
    else:
        report.tracker_due_at = now + timedelta(seconds=backoff_s(claim.attempt))
        report.updated_at = now
    return report.tracker_status


async def _send(core: Core, client: httpx2.AsyncClient, claim: Claim) -> None:
    reason = await _post(core.settings.tracker_url or "", client, claim.event)
    now = core.clock()
    status = await core.write(
        lambda session: conclude(session, core.settings, claim, not reason, now)
    )
    core.metrics.tracked("retried" if status == "pending" else "sent" if not reason else "failed")
    log.log(
        logging.WARNING if reason else logging.INFO,
        "report=%s attempt=%d tracker=%s %s",
        claim.event.report_id,
        claim.attempt,
        status,
        reason,
    )


async def _post(url: str, client: httpx2.AsyncClient, event: Event) -> str:
    """Return why it failed, or nothing. The answer's body is not read: nobody bounds it."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": event.event_id}
    content = encode(event)
    try:
        async with client.stream("POST", url, content=content, headers=headers) as response:
            return "" if response.is_success else f"the tracker answered {response.status_code}"
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return f"{type(error).__name__}: {error}"


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
