"""Standard names for tables, columns and stored values. No row is lost."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

INDEXES = {
    "devices": ("devices_by_place", "devices_by_priority"),
    "maintenance_windows": ("maintenance_by_place",),
    "gaps": ("gaps_by_device", "gaps_open"),
    "notices": ("notices_open", "notices_by_organization"),
    "notice_deliveries": ("notice_deliveries_due",),
    "wishes": ("wishes_open", "wishes_by_instance"),
}
"""Indexes whose name, columns or condition change."""
TABLES = {
    "listened": "monitoring_state",
    "gaps": "offline_intervals",
    "watched_conditions": "alert_states",
    "notices": "alerts",
    "notice_deliveries": "alert_notifications",
    "wishes": "pending_requests",
}
COLUMNS = {
    "devices": {"tone": "severity"},
    "reports": {"tone": "severity"},
    "monitoring_state": {"began_at": "started_at", "judged_at": "checked_at"},
    "alert_states": {
        "holds": "is_active",
        "began_at": "active_since",
        "gone_at": "inactive_since",
        "is_told": "is_firing",
    },
    "alerts": {
        "opened_at": "started_at",
        "told_at": "fired_at",
        "end_told_at": "resolved_at",
    },
    "alert_notifications": {"notice_id": "alert_id", "is_end": "is_resolved"},
    "pending_requests": {"key_id": "requester_id", "tries": "attempts"},
    "support_links": {"asked_by": "requested_by", "asked_at": "requested_at"},
}
VALUES = (
    ("alert_states", "condition", "dark", "site_outage"),
    ("alerts", "condition", "dark", "site_outage"),
    ("pending_requests", "state", "asked", "dispatched"),
    ("audit_entries", "operation", "wish.create", "pending_request.create"),
    ("audit_entries", "operation", "wish.cancel", "pending_request.cancel"),
    ("audit_entries", "credential_kind", "wish", "pending_request"),
    ("audit_entries", "actor_kind", "person", "user"),
)
TYPES = {"notice.opened": "alert.firing", "notice.ended": "alert.resolved"}


def upgrade() -> None:
    for table, names in INDEXES.items():
        for name in names:
            op.drop_index(name, table)
    for old, new in TABLES.items():
        op.rename_table(old, new)
    for table, columns in COLUMNS.items():
        for old, new in columns.items():
            op.execute(sa.text(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}"))
    for table, column, old, new in VALUES:
        op.execute(sa.text(f"UPDATE {table} SET {column} = '{new}' WHERE {column} = '{old}'"))
    _rename_in_bodies()
    _rename_constraints()
    _create_indexes()


def _rename_in_bodies() -> None:
    """Rename the fields of notifications, which are sent as they are stored."""
    connection = op.get_bind()
    rows = connection.execute(sa.text("SELECT position, body FROM alert_notifications")).all()
    for position, body in rows:
        fields: dict[str, Any] = {
            {"noticeId": "alertId"}.get(name, name): value
            for name, value in json.loads(body).items()
        }
        fields["type"] = TYPES.get(fields["type"], fields["type"])
        if fields["condition"] == "dark":
            fields["condition"] = "site_outage"
        connection.execute(
            sa.text("UPDATE alert_notifications SET body = :body WHERE position = :position"),
            {"body": json.dumps(fields), "position": position},
        )


def _rename_constraints() -> None:
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        with op.batch_alter_table("alert_notifications") as batch:
            batch.drop_constraint("notice_deliveries_once", type_="unique")
            batch.create_unique_constraint("alert_notifications_once", ["alert_id", "is_resolved"])
        return
    constraints = sa.text("SELECT conname FROM pg_constraint WHERE conrelid = to_regclass(:table)")
    for old, new in TABLES.items():
        for name in connection.scalars(constraints, {"table": new}).all():
            renamed = new + name.removeprefix(old)
            op.execute(sa.text(f"ALTER TABLE {new} RENAME CONSTRAINT {name} TO {renamed}"))
        sequence = sa.text(
            f"ALTER SEQUENCE IF EXISTS {old}_position_seq RENAME TO {new}_position_seq"
        )
        op.execute(sequence)


def _create_indexes() -> None:
    op.create_index(
        "devices_by_location", "devices", ["organization_id", "location_id", "position"]
    )
    op.create_index(
        "devices_by_priority",
        "devices",
        [
            "organization_id",
            "priority",
            "position",
            "severity",
            "location_id",
            "platform",
            "app_version",
            "legacy_install_id",
            "instance_id",
        ],
    )
    op.create_index(
        "maintenance_windows_by_location",
        "maintenance_windows",
        ["organization_id", "location_id", "until"],
    )
    op.create_index("offline_intervals_by_device", "offline_intervals", ["device", "since"])
    _partial("offline_intervals_open", "offline_intervals", ["device"], "until IS NULL")
    _partial(
        "alerts_open",
        "alerts",
        ["organization_id", "location_id", "instance", "condition", "is_flapping"],
        "resolved_at IS NULL",
    )
    op.create_index("alerts_by_organization", "alerts", ["organization_id", "position"])
    _partial(
        "alert_notifications_due",
        "alert_notifications",
        ["due_at"],
        "due_at IS NOT NULL",
        unique=False,
    )
    _partial(
        "pending_requests_open",
        "pending_requests",
        ["organization_id", "instance_id", "kind"],
        "state IN ('waiting', 'dispatched')",
    )
    op.create_index("pending_requests_by_instance", "pending_requests", ["instance_id", "position"])


def _partial(name: str, table: str, columns: list[str], where: str, *, unique: bool = True) -> None:
    op.create_index(
        name,
        table,
        columns,
        unique=unique,
        sqlite_where=sa.text(where),
        postgresql_where=sa.text(where),
    )
