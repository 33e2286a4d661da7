"""Adds the notifications of alerts that fire and resolve, for each matching route.

They are added in the transaction that stores the change of the alert, so a crash neither loses nor
repeats them. On a route with a group interval, alerts of the same rule and location are *grouped*:
an alert waits until this interval has passed since the previous notification of the group. Then one
notification contains all alerts that waited. A route with a daily digest has one group for all
alerts.
"""

import json
import uuid
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.alerts.messages import body_of
from controlplane.settings import Settings
from controlplane.storage.monitoring_tables import Alert, AlertRoute, Notification, NotifiedAlert

OPERATOR_ROUTE: Final = ""
"""The id of the route to the operator's webhook."""
DIGEST_HOUR: Final = 7
"""Hour of the day, in UTC, at which a daily digest is sent."""
GROUP_MAX: Final = 100
"""Maximum number of starts and ends of alerts in one notification. If a digest has more, it becomes
several notifications, which are sent at the same time."""


class Notifier:
    """Adds notifications. It reads the routes of an organization once."""

    def __init__(self, session: Session, settings: Settings, now: datetime) -> None:
        self._session = session
        self._settings = settings
        self._now = now
        self._routes: dict[str, list[AlertRoute]] = {}

    def notify(self, alert: Alert, name: str, zone: str | None, *, is_resolved: bool) -> None:
        """Add the notifications about an alert.

        Args:
            name: name of the device, or id of the location.
            zone: time zone of the location.
        """
        body = body_of(alert, name, zone, self._settings.origin, is_resolved=is_resolved)
        for route in self._routes_for(alert, is_resolved=is_resolved):
            row = NotifiedAlert(alert_id=alert.id, is_resolved=is_resolved, body=json.dumps(body))
            key = _group_key(route, alert)
            add_alert(self._session, alert.organization_id, route, key, row, now=self._now)

    def _routes_for(self, alert: Alert, *, is_resolved: bool) -> Iterable[AlertRoute]:
        """Return the routes for an alert.

        A route that was notified when the alert fired is also notified when the alert resolves.
        """
        if alert.is_muted:
            return ()
        notified: Collection[str] = ()
        if is_resolved:
            query = select(NotifiedAlert.route).where(NotifiedAlert.alert_id == alert.id)
            notified = set(self._session.scalars(query))
        routes = self._routes_of(alert.organization_id)
        return [each for each in routes if _matches(each, alert) or each.id in notified]

    def _routes_of(self, organization_id: str) -> list[AlertRoute]:
        if organization_id not in self._routes:
            query = select(AlertRoute).where(
                AlertRoute.organization_id == organization_id, AlertRoute.is_enabled
            )
            routes = list(self._session.scalars(query.order_by(AlertRoute.id)))
            if not routes and self._settings.notify_url is not None:
                routes = [_operator_route()]
            self._routes[organization_id] = routes
        return self._routes[organization_id]


def _operator_route() -> AlertRoute:
    """Return the route to the operator's webhook. It is not stored, and matches all alerts."""
    return AlertRoute(
        id=OPERATOR_ROUTE, severities=[], locations=[], group_minutes=0, is_digest=False
    )


def _matches(route: AlertRoute, alert: Alert) -> bool:
    """Return whether the matchers of a route match an alert. An empty matcher matches all."""
    return (not route.severities or alert.severity in route.severities) and (
        not route.locations or alert.location_id in route.locations
    )


def is_grouped(route: AlertRoute) -> bool:
    """Return whether several alerts can share a notification of the route."""
    return route.is_digest or bool(route.group_minutes)


def _group_key(route: AlertRoute, alert: Alert) -> str:
    """Return the key of the group of an alert.

    Without a group interval, each alert is a group of its own.
    """
    if route.is_digest:
        return "digest"
    return f"{alert.location_id} {alert.condition}" if route.group_minutes else str(alert.id)


def _schedule(route: AlertRoute, previous: datetime | None, now: datetime) -> datetime:
    """Return when to send a new notification of a group.

    Args:
        previous: the time for which the previous notification of the group was scheduled.
    """
    if route.is_digest:
        digest_at = now.replace(hour=DIGEST_HOUR, minute=0, second=0, microsecond=0)
        return digest_at if digest_at > now else digest_at + timedelta(days=1)
    if previous is None:
        return now
    return max(now, previous + timedelta(minutes=route.group_minutes))


def add_alert(
    session: Session,
    organization_id: str,
    route: AlertRoute,
    group_key: str,
    notified_alert: NotifiedAlert,
    *,
    now: datetime,
) -> None:
    """Add an alert to the newest notification of its group, or to a new notification.

    A new notification is used if the route does not group alerts, or if the newest notification of
    the group is full or its delivery was attempted.
    """
    notification = session.scalars(
        select(Notification)
        .where(
            Notification.organization_id == organization_id,
            Notification.route == route.id,
            Notification.group_key == group_key,
        )
        .order_by(Notification.position.desc())
        .limit(1)
        # The row is locked, because another process may be about to send the notification.
        .with_for_update()
        .execution_options(populate_existing=True)
    ).first()
    if notification is None or not (is_grouped(route) and _has_space(session, notification)):
        previous = None if notification is None else notification.scheduled_at
        notification = new_notification(
            organization_id, route.id, group_key, _schedule(route, previous, now), now
        )
        session.add(notification)
    notified_alert.notification, notified_alert.route = notification.id, route.id
    session.add(notified_alert)
    session.flush()


def new_notification(
    organization_id: str, route: str, group_key: str, scheduled_at: datetime, now: datetime
) -> Notification:
    return Notification(
        id=f"msg_{uuid.uuid4().hex}",
        organization_id=organization_id,
        route=route,
        group_key=group_key,
        status="pending",
        attempts=0,
        scheduled_at=scheduled_at,
        due_at=scheduled_at,
        created_at=now,
        updated_at=now,
        error="",
    )


def split_groups(session: Session, organization_id: str, route: str, now: datetime) -> None:
    """Move each undelivered alert of a route to a notification of its own, which is due now.

    Call this when a route stops grouping alerts, for two reasons. The route may now be for
    PagerDuty, and an event of PagerDuty can contain only one alert. And each new notification of
    the route is now sent at once: if an alert still waited with its group, its resolved
    notification could be sent before its firing notification.
    """
    query = select(Notification).where(
        Notification.organization_id == organization_id,
        Notification.route == route,
        Notification.status == "pending",
    )
    grouped = session.scalars(query.order_by(Notification.position).with_for_update()).all()
    for notification in grouped:
        notification.status, notification.due_at, notification.updated_at = "failed", None, now
        notification.error = "the route no longer groups alerts: each one is sent separately"
        alerts = select(NotifiedAlert).where(NotifiedAlert.notification == notification.id)
        by_alert: dict[uuid.UUID, Notification] = {}
        for row in session.scalars(alerts.order_by(NotifiedAlert.position)).all():
            if row.alert_id not in by_alert:
                by_alert[row.alert_id] = new_notification(
                    organization_id, route, str(row.alert_id), now, now
                )
                session.add(by_alert[row.alert_id])
                session.flush()  # notifications get positions in the order of their alerts
            row.notification = by_alert[row.alert_id].id


def bodies_of(session: Session, notification: Notification) -> list[dict[str, Any]]:
    """Return the newest body of each alert in a notification, in the order of the alerts."""
    query = select(NotifiedAlert).where(NotifiedAlert.notification == notification.id)
    rows = session.scalars(query.order_by(NotifiedAlert.position))
    # A later body of an alert replaces the earlier body, at the same position of the list.
    return list({row.alert_id: json.loads(row.body) for row in rows}.values())


def _has_space(session: Session, notification: Notification) -> bool:
    """Return whether an alert can be added: no delivery was attempted, and there is space."""
    if notification.status != "pending" or notification.attempts:
        return False
    query = select(NotifiedAlert.position).where(NotifiedAlert.notification == notification.id)
    return len(session.scalars(query.limit(GROUP_MAX)).all()) < GROUP_MAX
