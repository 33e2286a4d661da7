"""What time does by itself: requests expire, old challenges go."""

from datetime import datetime, timedelta
from typing import Any, cast

from sqlalchemy import CursorResult, delete
from sqlalchemy.orm import Session

from controlplane.devices.requests.expiry import expire_due
from controlplane.storage.tables import Challenge

CHALLENGES_KEPT = timedelta(days=1)
"""How long after its end a challenge is kept, so that a repeated answer is still recognised."""


def sweep(session: Session, now: datetime) -> tuple[int, int]:
    """Return how many requests expired and how many challenges were deleted."""
    expired = expire_due(session, now)
    old = delete(Challenge).where(Challenge.expires_at < now - CHALLENGES_KEPT)
    deleted = cast("CursorResult[Any]", session.execute(old)).rowcount
    return expired, deleted
