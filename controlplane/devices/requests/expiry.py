"""Expiry of requests, whenever they are used and in a periodic sweep.

Call these functions before loading requests: objects in the session are not updated.
"""

from datetime import datetime
from typing import Any, cast
from uuid import UUID

from sqlalchemy import CursorResult, Update, case, update
from sqlalchemy.orm import Session

from controlplane.devices.requests import lifecycle
from controlplane.storage.tables import Request


def expire_due(session: Session, now: datetime, instance_id: UUID | None = None) -> int:
    """Expire due requests, of one instance or of all. Returns how many."""
    query = update(Request).where(Request.status.in_(lifecycle.OPEN), Request.expires_at <= now)
    if instance_id is not None:
        query = query.where(Request.instance_id == instance_id)
    return _expire(session, query, now)


def expire_binding(session: Session, now: datetime, binding_id: UUID) -> int:
    """Expire the open requests of a binding that ends. Returns how many."""
    query = update(Request).where(
        Request.status.in_(lifecycle.OPEN), Request.binding_id == binding_id
    )
    return _expire(session, query, now)


def _expire(session: Session, query: Update, now: datetime) -> int:
    expired = lifecycle.move("queued", "expire")
    # Due requests are already shown as finished at their expiry.
    finished_at = case((Request.expires_at < now, Request.expires_at), else_=now)
    update_ = query.values(status=expired, finished_at=finished_at, updated_at=now)
    # Updating the session's objects would cost as much as the update itself.
    changed = session.execute(update_, execution_options={"synchronize_session": False})
    return cast("CursorResult[Any]", changed).rowcount
