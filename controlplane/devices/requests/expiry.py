"""Expires requests. Operations that change requests do this first. A periodic sweep does it too.

Call these functions before you load requests. They do not update objects that the database session
has already loaded.
"""

from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, Update, and_, case, update
from sqlalchemy.orm import Session

from controlplane.devices.requests import lifecycle
from controlplane.storage.statements import change_rows
from controlplane.storage.tables import Request


def is_open(now: datetime) -> ColumnElement[bool]:
    """Return the condition for requests that are open and not due."""
    return and_(Request.status.in_(lifecycle.OPEN), Request.expires_at > now)


def expire_due(session: Session, now: datetime, instance_id: UUID | None = None) -> int:
    """Expire the due requests of one instance, or of all. Return the number of expired requests."""
    statement = update(Request).where(Request.status.in_(lifecycle.OPEN), Request.expires_at <= now)
    if instance_id is not None:
        statement = statement.where(Request.instance_id == instance_id)
    return _expire(session, statement, now)


def expire_binding(session: Session, now: datetime, binding_id: UUID) -> int:
    """Expire the open requests of a binding that ends. Return the number of expired requests."""
    statement = update(Request).where(
        Request.status.in_(lifecycle.OPEN), Request.binding_id == binding_id
    )
    return _expire(session, statement, now)


def _expire(session: Session, statement: Update, now: datetime) -> int:
    target_state = lifecycle.move("queued", "expire")
    # Read operations already show a due request as finished at its expiry.
    finished_at = case((Request.expires_at < now, Request.expires_at), else_=now)
    return change_rows(
        session, statement.values(status=target_state, finished_at=finished_at, updated_at=now)
    )
