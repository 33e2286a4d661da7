"""Adds the tables of the printers, searchable texts and incidents in the newest reports.

Also adds the time at which an unused API key expires, and the webhooks of organizations.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    _add_report_texts()
    _add_device_printers()
    _add_expiry_of_unused_keys()
    _add_alert_webhooks()
    _add_incidents()


def _add_report_texts() -> None:
    """Add a row without a text for each newest report. The running service adds the texts."""
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
    op.execute(
        "INSERT INTO report_texts (device, kind, organization_id)"
        " SELECT position, 'network', organization_id FROM devices WHERE network_report IS NOT NULL"
    )
    op.execute(
        "INSERT INTO report_texts (device, kind, organization_id) SELECT position, 'application',"
        " organization_id FROM devices WHERE application_report IS NOT NULL"
    )


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


def _add_expiry_of_unused_keys() -> None:
    expiry = sa.Column("unused_until", sa.DateTime(timezone=True), nullable=True)
    op.add_column("api_keys", expiry)


def _add_alert_webhooks() -> None:
    op.create_table(
        "alert_webhooks",
        sa.Column("organization_id", sa.Text(), primary_key=True),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
    )


def _add_incidents() -> None:
    position = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "device_incidents",
        sa.Column("position", position, primary_key=True, autoincrement=True),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("location_id", sa.Text(), nullable=False),
        sa.Column("device", sa.BigInteger(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("reported_s", sa.BigInteger(), nullable=False),
        sa.Column("began_s", sa.BigInteger(), nullable=False),
        sa.Column("ended_s", sa.BigInteger(), nullable=True),
        sa.Column("downtime_s", sa.BigInteger(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("correction_s", sa.BigInteger(), nullable=False),
    )
    for name, columns in (
        ("by_time", ["organization_id", "began_s", "position", "location_id"]),
        ("by_location", ["organization_id", "location_id", "began_s", "device"]),
        ("by_device", ["device", "began_s"]),
        ("by_age", ["began_s"]),
    ):
        op.create_index(f"device_incidents_{name}", "device_incidents", columns)
    op.create_table(
        "record_periods",
        sa.Column("position", position, primary_key=True, autoincrement=True),
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("location_id", sa.Text(), nullable=False),
        sa.Column("device", sa.BigInteger(), nullable=False),
        sa.Column("since_s", sa.BigInteger(), nullable=False),
        sa.Column("until_s", sa.BigInteger(), nullable=False),
    )
    columns = ["organization_id", "location_id", "until_s"]
    op.create_index("record_periods_by_location", "record_periods", columns)
    op.create_index("record_periods_by_device", "record_periods", ["device"])
