"""Deletes old monitoring data: offline intervals, maintenance windows, alerts, pending requests."""

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from controlplane.devices.overview.pending import OPEN
from controlplane.storage.monitoring_tables import (
    Alert,
    AlertNotification,
    MaintenanceWindow,
    OfflineInterval,
    PendingRequest,
)

LIVENESS_KEPT: Final = timedelta(days=40)
"""Longer than the thirty days of a timeline."""
ALERTS_KEPT: Final = timedelta(days=92)
"""Also for pending requests."""


def delete_old_monitoring(session: Session, now: datetime) -> None:
    """Delete what ended longer ago than it is kept."""
    liveness_end, alerts_end = now - LIVENESS_KEPT, now - ALERTS_KEPT
    old_alerts = select(Alert.id).where(Alert.resolved_at < alerts_end)
    for statement in (
        delete(OfflineInterval).where(OfflineInterval.until < liveness_end),
        delete(MaintenanceWindow).where(MaintenanceWindow.until < liveness_end),
        delete(AlertNotification).where(AlertNotification.alert_id.in_(old_alerts)),
        delete(Alert).where(Alert.resolved_at < alerts_end),
        delete(PendingRequest).where(
            PendingRequest.state.not_in(OPEN), PendingRequest.updated_at < alerts_end
        ),
    ):
        session.execute(statement, execution_options={"synchronize_session": False})
