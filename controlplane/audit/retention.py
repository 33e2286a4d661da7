"""Deletes old audit entries in small transactions, so that no call waits long for the database."""

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from controlplane.storage.audit_tables import AuditEntry
from controlplane.storage.statements import change_rows

ROWS_A_STEP: Final = 200


def delete_old_entries(session: Session, now: datetime, keep: timedelta) -> int:
    """Delete at most `ROWS_A_STEP` entries older than ``keep``. Return how many were deleted."""
    old = select(AuditEntry.position).where(AuditEntry.at < now - keep).limit(ROWS_A_STEP)
    positions = session.scalars(old).all()
    return change_rows(session, delete(AuditEntry).where(AuditEntry.position.in_(positions)))
