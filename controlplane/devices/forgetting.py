"""What is remembered of being heard goes in its time, or the tables would grow for ever."""

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from controlplane.storage.watch_tables import (
    Gap,
    MaintenanceWindow,
    Notice,
    NoticeDelivery,
    PendingRequest,
)

SILENCE_KEPT: Final = timedelta(days=40)
"""More than the thirty days that are shown."""
TOLD_KEPT: Final = timedelta(days=92)


def forget_old(session: Session, now: datetime) -> None:
    """Delete what nobody is shown any more: ended silences and maintenance, notices, wishes."""
    ended = select(Notice.id).where(Notice.end_told_at < now - TOLD_KEPT)
    for statement in (
        delete(Gap).where(Gap.until < now - SILENCE_KEPT),
        delete(MaintenanceWindow).where(MaintenanceWindow.until < now - SILENCE_KEPT),
        delete(NoticeDelivery).where(NoticeDelivery.notice_id.in_(ended)),
        delete(Notice).where(Notice.end_told_at < now - TOLD_KEPT),
        delete(PendingRequest).where(
            PendingRequest.state.not_in(("waiting", "asked")),
            PendingRequest.updated_at < now - TOLD_KEPT,
        ),
    ):
        session.execute(statement, execution_options={"synchronize_session": False})
