"""Deletes old monitoring data.

These are offline intervals, maintenance windows, alerts with their notifications, silences, pending
requests, incidents, the periods for which the incidents of a device are known, ended problems of
printers, the daily changes of finding counts, and finding counts of 0.
"""

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from controlplane.devices.findings.counting import day_of
from controlplane.devices.incidents.contents import seconds_of
from controlplane.devices.incidents.storing import INCIDENTS_KEPT
from controlplane.storage import monitoring_tables as tables
from controlplane.storage.monitoring_tables import AlertSilence, Notification, NotifiedAlert
from controlplane.storage.report_tables import (
    DeviceIncident,
    FindingCount,
    FindingDay,
    PrinterProblem,
    RecordPeriod,
)
from controlplane.storage.statements import change_rows

LIVENESS_KEPT: Final = timedelta(days=40)
"""Retention period of offline intervals and maintenance windows. It is longer than the thirty days
of a timeline."""
ALERTS_KEPT: Final = timedelta(days=92)
"""Retention period of resolved alerts, of delivered or failed notifications, and of silences and
pending requests that have ended."""


def delete_old_monitoring(session: Session, now: datetime) -> None:
    """Delete the monitoring data whose retention period is over, and finding counts of 0."""
    liveness_cutoff, alerts_cutoff = now - LIVENESS_KEPT, now - ALERTS_KEPT
    incidents_cutoff_s = seconds_of(now - INCIDENTS_KEPT)
    old_alerts = select(tables.Alert.id).where(tables.Alert.resolved_at < alerts_cutoff)
    is_old = (Notification.created_at < alerts_cutoff) & Notification.due_at.is_(None)
    for statement in (
        delete(tables.OfflineInterval).where(tables.OfflineInterval.until < liveness_cutoff),
        delete(tables.MaintenanceWindow).where(tables.MaintenanceWindow.until < liveness_cutoff),
        delete(AlertSilence).where(AlertSilence.until < alerts_cutoff),
        delete(NotifiedAlert).where(
            NotifiedAlert.alert_id.in_(old_alerts)
            # The alert of a test notification is not stored, so the age of the notification counts.
            | NotifiedAlert.notification.in_(select(Notification.id).where(is_old))
            & NotifiedAlert.alert_id.not_in(select(tables.Alert.id))
        ),
        delete(Notification).where(is_old),
        delete(tables.Alert).where(tables.Alert.resolved_at < alerts_cutoff),
        delete(tables.PendingRequest).where(
            tables.PendingRequest.state.not_in(tables.OPEN_PENDING),
            tables.PendingRequest.updated_at < alerts_cutoff,
        ),
        delete(DeviceIncident).where(DeviceIncident.began_s < incidents_cutoff_s),
        delete(RecordPeriod).where(RecordPeriod.until_s < incidents_cutoff_s),
        delete(PrinterProblem).where(PrinterProblem.until < now - INCIDENTS_KEPT),
        delete(FindingDay).where(FindingDay.day < day_of(now - INCIDENTS_KEPT)),
        delete(FindingCount).where(FindingCount.devices == 0),
    ):
        change_rows(session, statement)
