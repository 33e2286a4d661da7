"""Adds rules, silences and routes of alerts.

The webhook of an organization becomes a route. Notifications are moved to tables in which a
notification has a route and can be about several alerts.
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    _add_settings()
    _add_columns_of_alerts()
    _add_routes()
    _add_notifications()


def _position() -> sa.Column[int]:
    return sa.Column(
        "position",
        sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
        primary_key=True,
        autoincrement=True,
    )


def _text(name: str, *, key: bool = False, unique: bool | None = None) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False, primary_key=key, unique=unique)


def _time(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _add_settings() -> None:
    op.create_table(
        "alert_rules",
        *(_text(name, key=True) for name in ("organization_id", "location_id", "name")),
        *(_text(name) for name in ("argument", "severity")),
        sa.Column("for_minutes", sa.Integer(), nullable=True),
        sa.Column("is_enabled", sa.Boolean(), nullable=False),
    )
    op.create_table(
        "alert_silences",
        _position(),
        sa.Column("id", sa.Uuid(), nullable=False, unique=True),
        *(_text(name) for name in ("organization_id", "location_id", "instance", "rule")),
        *(_time(name) for name in ("since", "until")),
        *(_text(name) for name in ("reason", "created_by")),
    )
    op.create_index(
        "alert_silences_by_organization", "alert_silences", ["organization_id", "until"]
    )


def _add_columns_of_alerts() -> None:
    warning = sa.text("'warning'")
    op.add_column(
        "alerts", sa.Column("severity", sa.Text(), nullable=False, server_default=warning)
    )
    op.add_column(
        "alerts", sa.Column("is_muted", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.add_column("alerts", _time("acknowledged_at", nullable=True))
    op.add_column("alerts", sa.Column("acknowledged_by", sa.Text(), nullable=True))
    op.execute("UPDATE alerts SET severity = 'critical' WHERE condition = 'site_outage'")


def _add_routes() -> None:
    op.create_table(
        "alert_routes",
        *(_text(name, key=True) for name in ("organization_id", "id")),
        *(_text(name) for name in ("name", "kind", "target", "secret")),
        *(sa.Column(name, sa.JSON(), nullable=False) for name in ("severities", "locations")),
        sa.Column("group_minutes", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.Boolean(), nullable=False) for name in ("is_digest", "is_enabled")),
    )
    op.execute(
        "INSERT INTO alert_routes (organization_id, id, name, kind, target, secret, severities,"
        " locations, group_minutes, is_digest, is_enabled) SELECT organization_id,"
        " 'webhook', 'Webhook', 'webhook', url, secret, '[]', '[]', 0, false, true"
        " FROM alert_webhooks"
    )


def _add_notifications() -> None:
    op.create_table(
        "notifications",
        _position(),
        _text("id", unique=True),
        *(_text(name) for name in ("organization_id", "route", "group_key", "status")),
        sa.Column("attempts", sa.Integer(), nullable=False),
        _time("scheduled_at"),
        _time("due_at", nullable=True),
        *(_time(name) for name in ("created_at", "updated_at")),
        sa.Column("error", sa.Text(), nullable=False, server_default=sa.text("''")),
    )
    is_due = sa.text("due_at IS NOT NULL")
    op.create_index(
        "notifications_due",
        "notifications",
        ["due_at"],
        sqlite_where=is_due,
        postgresql_where=is_due,
    )
    op.create_index(
        "notifications_by_group",
        "notifications",
        ["organization_id", "route", "group_key", "position"],
    )
    op.create_table(
        "notified_alerts",
        _position(),
        *(_text(name) for name in ("notification", "route")),
        sa.Column("alert_id", sa.Uuid(), nullable=False),
        sa.Column("is_resolved", sa.Boolean(), nullable=False),
        _text("body"),
        sa.UniqueConstraint("alert_id", "is_resolved", "route", name="notified_alerts_once"),
    )
    op.create_index(
        "notified_alerts_by_notification", "notified_alerts", ["notification", "position"]
    )
    _move_notifications()


def _move_notifications() -> None:
    old = "FROM alert_notifications n JOIN alerts a ON a.id = n.alert_id"
    route = (
        "CASE WHEN EXISTS (SELECT 1 FROM alert_routes r WHERE"
        " r.organization_id = a.organization_id) THEN 'webhook' ELSE '' END"
    )
    key = "CAST(a.id AS TEXT)"
    op.execute(
        "INSERT INTO notifications (id, organization_id, route, group_key, status, attempts,"
        " scheduled_at, due_at, created_at, updated_at)"
        f" SELECT n.id, a.organization_id, {route}, {key}, n.status, n.attempts, n.created_at,"
        f" n.due_at, n.created_at, n.updated_at {old} ORDER BY n.position"
    )
    op.execute(
        "INSERT INTO notified_alerts (notification, route, alert_id, is_resolved, body)"
        f" SELECT n.id, {route}, n.alert_id, n.is_resolved, n.body {old} ORDER BY n.position"
    )
    op.drop_table("alert_notifications")
    op.drop_table("alert_webhooks")
