"""Requests that are past their time: judged whenever one is looked at, and by the sweep.

Before any of them is loaded: what a session holds already does not change with the rows."""

from datetime import datetime
from typing import Any, cast
from uuid import UUID

from sqlalchemy import CursorResult, Update, case, update
from sqlalchemy.orm import Session

from controlplane.devices.requests import lifecycle
from controlplane.storage.tables import Request


def expire_due(session: Session, now: datetime, instance_id: UUID | None = None) -> int:
    """Expire what is due, of one instance or of all. Returns how many."""
    query = update(Request).where(Request.status.in_(lifecycle.OPEN), Request.expires_at <= now)
    if instance_id is not None:
        query = query.where(Request.instance_id == instance_id)
    return _expire(session, query, now)


def expire_binding(session: Session, now: datetime, binding_id: UUID) -> int:
    """Expire what is open for a binding that ends. Returns how many."""
    query = update(Request).where(
        Request.status.in_(lifecycle.OPEN), Request.binding_id == binding_id
    )
    return _expire(session, query, now)


def _expire(session: Session, query: Update, now: datetime) -> int:
    expired = lifecycle.move("queued", "expire")
    # Before this was written it was shown as finished at its expiry: that must stay so.
    finished_at = case((Request.expires_at < now, Request.expires_at), else_=now)
    update_ = query.values(status=expired, finished_at=finished_at, updated_at=now)
    # To find in Python which of the session's objects are meant costs as much as the update.
    changed = session.execute(update_, execution_options={"synchronize_session": False})
    return cast("CursorResult[Any]", changed).rowcount
