"""What a console lists devices by, and the line that sums up each report."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

NEWEST = """
UPDATE devices SET {kind}_report = (
    SELECT MAX(reports.position) FROM reports
    WHERE reports.instance_id = devices.instance_id
    AND reports.organization_id = devices.organization_id AND reports.kind = '{kind}'
)"""


def upgrade() -> None:
    for column in (
        sa.Column("priority", sa.Integer, nullable=False, server_default=sa.text("4")),
        sa.Column("tone", sa.Text),
        sa.Column("network_report", sa.BigInteger),
        sa.Column("application_report", sa.BigInteger),
    ):
        op.add_column("devices", column)
    op.add_column("reports", sa.Column("headline", sa.Text))
    op.add_column("reports", sa.Column("tone", sa.Text))
    # Their headlines follow while the service runs; who is silent its sweep finds.
    op.execute(sa.text("UPDATE devices SET priority = 5 WHERE revoked_at IS NOT NULL"))
    for kind in ("network", "application"):
        op.execute(sa.text(NEWEST.format(kind=kind)))
    op.create_index(
        "devices_by_priority",
        "devices",
        [
            "organization_id",
            "priority",
            "position",
            "tone",
            "location_id",
            "platform",
            "app_version",
            "legacy_install_id",
            "instance_id",
        ],
    )
    op.create_index(
        "reports_by_organization", "reports", ["organization_id", "position", "location_id"]
    )
    op.create_index(
        "reports_without_headline",
        "reports",
        ["position"],
        sqlite_where=sa.text("headline IS NULL"),
        postgresql_where=sa.text("headline IS NULL"),
    )
