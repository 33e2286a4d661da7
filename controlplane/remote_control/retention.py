"""Deletion of old reports, requests and challenges, and expiry of requests.

`delete_old` deletes only a few rows in each transaction, so that no call waits for long. The newest
report of each kind is kept for every device, no matter how old it is. A request is kept as long as
its report.
"""

from datetime import datetime, timedelta

from sqlalchemy import delete, exists, select
from sqlalchemy.orm import Session, aliased

from controlplane.devices.requests import lifecycle
from controlplane.devices.requests.requests import expire_due
from controlplane.storage.statements import change_rows
from controlplane.storage.tables import Challenge, Report, Request

ROWS_A_STEP = 200
CHALLENGE_RETENTION = timedelta(days=1)
"""How long a challenge is kept after its expiry, so that a repeated answer is recognized."""


def sweep(session: Session, now: datetime) -> tuple[int, int]:
    """Expire requests and delete old challenges.

    Returns the number of expired requests and the number of deleted challenges.
    """
    old = delete(Challenge).where(Challenge.expires_at < now - CHALLENGE_RETENTION)
    return expire_due(session, now), change_rows(session, old)


def delete_old(session: Session, now: datetime, keep: timedelta) -> int:
    """Delete some reports that are older than ``keep``.

    If there are none, delete some requests that are older than ``keep``.

    Returns the number of deleted rows, which is 0 if nothing is left to delete.
    """
    before = now - keep
    return _delete_reports(session, before) or _delete_requests(session, before)


def _delete_reports(session: Session, before: datetime) -> int:
    newer = aliased(Report)
    is_replaced = exists().where(
        newer.instance_id == Report.instance_id,
        newer.organization_id == Report.organization_id,
        newer.kind == Report.kind,
        newer.position > Report.position,
    )
    old = (
        select(Report.position)
        .where(Report.created_at < before, is_replaced)
        .order_by(Report.created_at, Report.position)
        .limit(ROWS_A_STEP)
    )
    positions = session.scalars(old).all()
    return change_rows(session, delete(Report).where(Report.position.in_(positions)))


def _delete_requests(session: Session, before: datetime) -> int:
    old = (
        select(Request.position)
        .where(
            Request.created_at < before,
            Request.status.not_in(lifecycle.OPEN),
            ~exists().where(Report.request_id == Request.id),
        )
        .order_by(Request.created_at, Request.position)
        .limit(ROWS_A_STEP)
    )
    positions = session.scalars(old).all()
    return change_rows(session, delete(Request).where(Request.position.in_(positions)))
