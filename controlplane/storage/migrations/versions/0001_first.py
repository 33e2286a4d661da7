"""The layout of release 0.1.0."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.types import TypeEngine

revision = "0001"
down_revision = None

Position = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Moment = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table("schema_version", sa.Column("version", sa.Integer, primary_key=True))
    op.bulk_insert(sa.table("schema_version", sa.column("version")), [{"version": 1}])
    _accounts()
    _devices()
    _requests()
    _reports()


def _required(
    name: str, kind: TypeEngine[Any] | type[TypeEngine[Any]], *, unique: bool | None = None
) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, unique=unique)


def _accounts() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Uuid, primary_key=True),
        _required("name", sa.Text),
        _required("secret_hash", sa.Text, unique=True),
        _required("hint", sa.Text),
        _required("can_write", sa.Boolean),
        _required("organization_id", sa.Text),
        _required("locations", sa.JSON),
        _required("created_at", Moment),
        sa.Column("last_used_at", Moment),
        sa.Column("revoked_at", Moment),
    )
    op.create_table(
        "challenges",
        sa.Column("id", sa.Uuid, primary_key=True),
        _required("nonce", sa.Text),
        _required("key_id", sa.Uuid),
        _required("organization_id", sa.Text),
        _required("instance_id", sa.Uuid),
        _required("public_key", sa.Text),
        _required("platform", sa.Text),
        _required("location_id", sa.Text),
        _required("legacy_install_id", sa.Text),
        sa.Column("app_version", sa.Text),
        _required("capabilities", sa.JSON),
        _required("expires_at", Moment),
        sa.Column("signature", sa.Text),
        sa.Column("binding_id", sa.Uuid),
    )
    op.create_index("ix_challenges_expires_at", "challenges", ["expires_at"])


def _devices() -> None:
    op.create_table(
        "devices",
        sa.Column("position", Position, primary_key=True, autoincrement=True),
        _required("instance_id", sa.Uuid, unique=True),
        _required("binding_id", sa.Uuid, unique=True),
        _required("key_id", sa.Uuid),
        _required("organization_id", sa.Text),
        _required("location_id", sa.Text),
        _required("legacy_install_id", sa.Text),
        sa.Column("app_version", sa.Text),
        _required("capabilities", sa.JSON),
        _required("platform", sa.Text),
        _required("public_key", sa.Text),
        _required("user_id", sa.Text),
        _required("foreground", sa.Boolean),
        _required("created_at", Moment),
        _required("enrolled_at", Moment),
        _required("last_seen_at", Moment),
        sa.Column("revoked_at", Moment),
    )
    op.create_index("ix_devices_key_id", "devices", ["key_id"])
    op.create_index("devices_by_place", "devices", ["organization_id", "location_id", "position"])
    op.create_table(
        "bindings",
        sa.Column("id", sa.Uuid, primary_key=True),
        _required("instance_id", sa.Uuid),
        _required("organization_id", sa.Text),
        _required("location_id", sa.Text),
        _required("created_at", Moment),
        sa.Column("ended_at", Moment),
    )
    op.create_index("ix_bindings_instance_id", "bindings", ["instance_id"])


def _requests() -> None:
    op.create_table(
        "requests",
        sa.Column("position", Position, primary_key=True, autoincrement=True),
        _required("id", sa.Uuid, unique=True),
        _required("instance_id", sa.Uuid),
        _required("binding_id", sa.Uuid),
        _required("organization_id", sa.Text),
        _required("location_id", sa.Text),
        _required("requested_by_id", sa.Text),
        _required("kind", sa.Text),
        _required("status", sa.Text),
        _required("expires_at", Moment),
        sa.Column("received_at", Moment),
        sa.Column("started_at", Moment),
        sa.Column("finished_at", Moment),
        _required("created_at", Moment),
        _required("updated_at", Moment),
    )
    op.create_index("requests_by_instance", "requests", ["instance_id", "position"])
    op.create_index("requests_by_binding", "requests", ["binding_id", "status"])
    op.create_index("requests_by_expiry", "requests", ["status", "expires_at"])


def _reports() -> None:
    op.create_table(
        "reports",
        sa.Column("position", Position, primary_key=True, autoincrement=True),
        _required("id", sa.Uuid, unique=True),
        sa.Column("request_id", sa.Uuid, unique=True),
        _required("instance_id", sa.Uuid),
        _required("binding_id", sa.Uuid),
        _required("organization_id", sa.Text),
        _required("location_id", sa.Text),
        _required("user_id", sa.Text),
        _required("kind", sa.Text),
        _required("outcome", sa.Text),
        sa.Column("failure_reason", sa.Text),
        _required("payload", sa.Text),
        _required("payload_hash", sa.Text),
        _required("body_hash", sa.Text),
        _required("tracker_status", sa.Text),
        _required("tracker_event_id", sa.Text),
        _required("tracker_attempts", sa.Integer),
        sa.Column("tracker_due_at", Moment),
        _required("created_at", Moment),
        _required("updated_at", Moment),
    )
    op.create_index("reports_by_instance", "reports", ["instance_id", "position"])
    op.create_index("reports_by_tracker", "reports", ["tracker_status", "tracker_due_at"])
