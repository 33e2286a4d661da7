"""Deletes old audit entries in small transactions, so that no call waits for long."""

from datetime import datetime, timedelta
from typing import Any, Final, cast

from sqlalchemy import CursorResult, delete, select
from sqlalchemy.orm import Session

from controlplane.storage.audit_tables import AuditEntry

ROWS_A_STEP: Final = 200


def delete_old_entries(session: Session, now: datetime, keep: timedelta) -> int:
    """Delete at most `ROWS_A_STEP` entries older than ``keep``. Return how many were deleted."""
    old = select(AuditEntry.position).where(AuditEntry.at < now - keep).limit(ROWS_A_STEP)
    statement = delete(AuditEntry).where(AuditEntry.position.in_(session.scalars(old).all()))
    done = session.execute(statement, execution_options={"synchronize_session": False})
    return cast("CursorResult[Any]", done).rowcount
