"""Adds what the newest reports say about printers, and the texts by which devices are searched."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    _add_report_texts()
    _add_device_printers()


def _add_report_texts() -> None:
    """Add the texts of the newest reports. The running service reads these reports."""
    op.create_table(
        "report_texts",
        sa.Column("device", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text(), primary_key=True),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=True),
    )
    op.create_index("report_texts_by_organization", "report_texts", ["organization_id"])
    missing = sa.text("text IS NULL")
    op.create_index(
        "report_texts_missing",
        "report_texts",
        ["device"],
        sqlite_where=missing,
        postgresql_where=missing,
    )
    into = ["device", "kind", "organization_id"]
    devices, texts = sa.table("devices"), sa.table("report_texts", *map(sa.column, into))
    for kind in ("network", "application"):
        has_report = sa.column(f"{kind}_report").is_not(None)
        columns = sa.column("position"), sa.literal(kind), sa.column("organization_id")
        newest = sa.select(*columns).select_from(devices).where(has_report)
        op.execute(sa.insert(texts).from_select(into, newest))


def _add_device_printers() -> None:
    position = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "device_printers",
        sa.Column("position", position, primary_key=True, autoincrement=True),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("device", sa.BigInteger(), nullable=False),
        sa.Column("printer_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("state", sa.Integer(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index(
        "device_printers_by_state", "device_printers", ["organization_id", "state", "position"]
    )
    op.create_index("device_printers_by_device", "device_printers", ["device"])
