"""Monitoring of devices: opening hours, maintenance, offline intervals, alerts, pending requests.

As in `controlplane.storage.tables`, all times are UTC, and lists are ordered by ``position``.
"""

from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import JSON, BigInteger, Index, UniqueConstraint, false, text
from sqlalchemy.orm import Mapped, mapped_column

from agent.wire.vocabulary import Kind
from controlplane.storage.tables import Base, Position, partial_index

OPEN_PENDING: Final = ("waiting", "dispatched")
"""The states of a `PendingRequest` that has not ended."""


class LocationHours(Base):
    """The opening hours of a location, in its time zone (`merchant_tables.Location.zone`).

    ``opening_hours`` has lines in the format of `devices.locations.opening_hours`. None means that
    the location is always open.
    """

    __tablename__ = "location_hours"
    organization_id: Mapped[str] = mapped_column(primary_key=True)
    location_id: Mapped[str] = mapped_column(primary_key=True)
    opening_hours: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))


class MaintenanceWindow(Base):
    """A period in which a device causes no alerts.

    If ``instance_id`` is None, no device of the location causes alerts.
    """

    __tablename__ = "maintenance_windows"
    __table_args__ = (
        Index("maintenance_windows_by_location", "organization_id", "location_id", "until"),
    )
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    organization_id: Mapped[str]
    location_id: Mapped[str]
    instance_id: Mapped[UUID | None]
    since: Mapped[datetime]
    until: Mapped[datetime]
    reason: Mapped[str]


class MonitoringState(Base):
    """One row with the times of the periodic evaluations of the fleet (`alerts.evaluation`).

    ``started_at`` is the time of the first evaluation, and ``checked_at`` of the last one.
    ``resumed_at`` is the time of the first evaluation after the last pause of the service.
    """

    __tablename__ = "monitoring_state"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    started_at: Mapped[datetime]
    checked_at: Mapped[datetime]
    resumed_at: Mapped[datetime]


class OfflineInterval(Base):
    """A period in which a device was offline. ``until`` is None if the device is still offline.

    ``device`` is the `Device.position`. If it is None, the service itself was not running in this
    period.
    """

    __tablename__ = "offline_intervals"
    __table_args__ = (
        Index("offline_intervals_by_device", "device", "since"),
        partial_index("offline_intervals_open", "device", where="until IS NULL", unique=True),
    )
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    device: Mapped[int | None] = mapped_column(BigInteger)
    since: Mapped[datetime]
    until: Mapped[datetime | None]


class AlertState(Base):
    """The state of a condition between two evaluations (`alerts.rules.ConditionState`).

    ``instance`` is empty for a condition of the location itself. ``condition`` is the name of the
    rule. ``changes`` has the times of the last changes of ``is_active``. A row is deleted when it
    holds nothing that a later evaluation needs.
    """

    __tablename__ = "alert_states"
    organization_id: Mapped[str] = mapped_column(primary_key=True)
    location_id: Mapped[str] = mapped_column(primary_key=True)
    instance: Mapped[str] = mapped_column(primary_key=True)
    condition: Mapped[str] = mapped_column(primary_key=True)
    is_active: Mapped[bool]
    active_since: Mapped[datetime | None]
    inactive_since: Mapped[datetime | None]
    is_firing: Mapped[bool]
    is_flapping: Mapped[bool]
    changes: Mapped[list[str]]


class Alert(Base):
    """An alert that fired.

    At most one alert is open for each location, instance, condition and ``is_flapping``.

    ``condition`` is the name of its rule (`AlertRule`). ``instance`` is the instance id of the
    device, or empty for a condition of the location. ``started_at`` and ``ended_at`` are when the
    condition became active and inactive. ``fired_at`` and ``resolved_at`` are when the alert fired
    and resolved. ``is_flapping`` means that the alert is about a condition that changes often.
    Such an alert starts with the first of these changes and ends with the last. ``detail`` is
    further text for users (`alerts.conditions`), or empty. ``is_muted`` means that a silence
    prevented its notifications. ``acknowledged_by`` is the name of the user or key that
    acknowledged it.
    """

    __tablename__ = "alerts"
    __table_args__ = (
        partial_index(
            "alerts_open",
            "organization_id",
            "location_id",
            "instance",
            "condition",
            "is_flapping",
            where="resolved_at IS NULL",
            unique=True,
        ),
        Index("alerts_by_organization", "organization_id", "position"),
    )
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    id: Mapped[UUID] = mapped_column(unique=True)
    organization_id: Mapped[str]
    location_id: Mapped[str]
    instance: Mapped[str]
    condition: Mapped[str]
    is_flapping: Mapped[bool]
    started_at: Mapped[datetime]
    fired_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    resolved_at: Mapped[datetime | None]
    detail: Mapped[str]
    severity: Mapped[str] = mapped_column(server_default=text("'warning'"))
    is_muted: Mapped[bool] = mapped_column(server_default=false())
    acknowledged_at: Mapped[datetime | None]
    acknowledged_by: Mapped[str | None]


class PendingRequest(Base):
    """A request that waits until its device is online (`controlplane.pending_requests`).

    ``requester_id`` is the id of the API key that created the pending request, or of the user if it
    was created in a session. ``attempts`` is the number of dispatched requests, and ``request_id``
    is the id of the latest. ``state`` is waiting, dispatched, done, cancelled, expired or revoked.
    ``until`` is the time at which an open pending request expires.
    """

    __tablename__ = "pending_requests"
    __table_args__ = (
        partial_index(
            "pending_requests_open",
            "organization_id",
            "instance_id",
            "kind",
            where="state IN ('waiting', 'dispatched')",
            unique=True,
        ),
        Index("pending_requests_by_instance", "instance_id", "position"),
    )
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    id: Mapped[UUID] = mapped_column(unique=True)
    organization_id: Mapped[str]
    instance_id: Mapped[UUID]
    kind: Mapped[Kind]
    requester_id: Mapped[UUID]
    state: Mapped[str]
    request_id: Mapped[UUID | None]
    attempts: Mapped[int]
    until: Mapped[datetime]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class AlertRule(Base):
    """A rule that an organization has set. It replaces the default rule of the same name, if any.

    ``location_id`` is empty for a rule of the whole organization. ``name`` is the condition, and
    for the conditions ``finding`` and ``incident`` also the argument: ``finding:queue-stopped``.
    ``argument`` is empty if the condition takes none. The alert fires after the condition was
    active for ``for_minutes``. None means the duration that the operator of the service has set.
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
    joined by commas, or the routing key of PagerDuty (`web.webhooks.bodies`). ``secret`` signs the
    notifications of a webhook (`web.webhooks.alerts.read_secret`); it is empty for other kinds.
    Empty ``severities`` or ``locations`` match all alerts. ``group_minutes`` is the shortest time
    between two notifications about alerts of the same rule and location; 0 means that each alert
    has notifications of its own. ``is_digest`` means one e-mail a day with all alerts.
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
    for the webhook of the operator. ``group_key`` identifies a group of alerts on the route
    (`alerts.notifications._group_key`). The notifications of a group are delivered in order.
    ``scheduled_at`` is the time of the first attempt: until then, alerts can be added. ``due_at``
    is the time of the next attempt, or None if there is none. ``status`` is pending, sent or
    failed. ``error`` is the result of the last failed attempt.
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

    ``is_resolved`` is False if the notification is about an alert that fires, and True if the alert
    resolves. The constraint ensures that a route is notified at most once when the alert fires, and
    at most once when it resolves.
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
