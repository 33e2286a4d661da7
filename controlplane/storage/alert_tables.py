"""Rules, silences and routes of alerts, and their notifications.

As in `controlplane.storage.tables`, all times are UTC, and lists are ordered by ``position``.
"""

from datetime import datetime
from uuid import UUID

from sqlalchemy import Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from controlplane.storage.tables import Base, Position, partial_index


class AlertRule(Base):
    """A rule that an organization has set, which replaces the default rule of the same name.

    ``location_id`` is empty for a rule of the whole organization. ``name`` is the condition, and
    for the conditions ``finding`` and ``incident`` also the argument: ``finding:queue-stopped``.
    ``argument`` is empty for a condition without one. ``for_minutes`` None means the duration that
    the operator of the service has set.
    """

    __tablename__ = "alert_rules"
    organization_id: Mapped[str] = mapped_column(primary_key=True)
    location_id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    argument: Mapped[str]
    severity: Mapped[str]
    for_minutes: Mapped[int | None]
    is_enabled: Mapped[bool]


class AlertSilence(Base):
    """A period in which matching alerts cause no notifications.

    An empty ``location_id``, ``instance`` or ``rule`` matches everything. ``created_by`` is the
    name of the user or key.
    """

    __tablename__ = "alert_silences"
    __table_args__ = (Index("alert_silences_by_organization", "organization_id", "until"),)
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    id: Mapped[UUID] = mapped_column(unique=True)
    organization_id: Mapped[str]
    location_id: Mapped[str]
    instance: Mapped[str]
    rule: Mapped[str]
    since: Mapped[datetime]
    until: Mapped[datetime]
    reason: Mapped[str]
    created_by: Mapped[str]


class AlertRoute(Base):
    """A receiver of the notifications of an organization, with matchers.

    ``kind`` is webhook, email, slack, teams or pagerduty. ``target`` is a URL, e-mail addresses
    joined by commas, or the routing key of PagerDuty. ``secret`` signs the notifications of a
    webhook (`web.webhooks.alerts.read_secret`); it is empty for other kinds. Empty ``severities``
    or ``locations`` match all alerts. ``group_minutes`` is the group interval; 0 means that each
    alert has notifications of its own. ``is_digest`` means one e-mail a day.
    """

    __tablename__ = "alert_routes"
    organization_id: Mapped[str] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    kind: Mapped[str]
    target: Mapped[str]
    secret: Mapped[str]
    severities: Mapped[list[str]]
    locations: Mapped[list[str]]
    group_minutes: Mapped[int]
    is_digest: Mapped[bool]
    is_enabled: Mapped[bool]


class Notification(Base):
    """A notification of one or several alerts, written in the same transaction as their changes.

    ``id`` is the same for each delivery attempt. ``route`` is the id of an `AlertRoute`, or empty
    for the webhook of the operator. Notifications of one ``group_key`` are delivered in order.
    ``scheduled_at`` is the time of the first attempt: until then, alerts can be added.
    ``status`` is pending, sent or failed. ``error`` is the result of the last failed attempt.
    """

    __tablename__ = "notifications"
    __table_args__ = (
        partial_index("notifications_due", "due_at", where="due_at IS NOT NULL"),
        Index("notifications_by_group", "organization_id", "route", "group_key", "position"),
    )
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(unique=True)
    organization_id: Mapped[str]
    route: Mapped[str]
    group_key: Mapped[str]
    status: Mapped[str]
    attempts: Mapped[int]
    scheduled_at: Mapped[datetime]
    due_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    error: Mapped[str] = mapped_column(server_default=text("''"))


class NotifiedAlert(Base):
    """An alert in a notification. ``body`` is the JSON that `alerts.messages.body_of` describes.

    The constraint ensures that a route is notified once that an alert fires (``is_resolved``
    False), and once that it resolves.
    """

    __tablename__ = "notified_alerts"
    __table_args__ = (
        UniqueConstraint("alert_id", "is_resolved", "route", name="notified_alerts_once"),
        Index("notified_alerts_by_notification", "notification", "position"),
    )
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    notification: Mapped[str]
    route: Mapped[str]
    alert_id: Mapped[UUID]
    is_resolved: Mapped[bool]
    body: Mapped[str]
