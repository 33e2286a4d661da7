"""Adds the tables of findings and of ended problems of printers.

The running service judges the reports that are stored already.
"""

from datetime import datetime

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)
INSERT_JUDGED_REPORTS = sa.text("""
    INSERT INTO judged_reports (device, kind, report, arrived_at, rules_version, is_recent)
    SELECT devices.position, reports.kind, reports.position, reports.created_at, 0, false
    FROM devices JOIN reports ON reports.position = (
        SELECT max(newest.position) FROM reports AS newest
        WHERE newest.instance_id = devices.instance_id
        AND newest.binding_id = devices.binding_id
        AND newest.kind = :kind AND newest.payload LIKE '{%'
    )
    WHERE devices.revoked_at IS NULL
""")


def upgrade() -> None:
    _add_printer_problems()
    _add_device_findings()
    _add_judged_reports()
    _add_sums()


def _text(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def _times(*names: str) -> list[sa.Column[datetime]]:
    return [sa.Column(name, TIME, nullable=False) for name in names]


def _index(table: str, name: str, *columns: str, unique: bool = False) -> None:
    op.create_index(f"{table}_by_{name}", table, columns, unique=unique)


def _add_printer_problems() -> None:
    op.create_table(
        "printer_problems",
        sa.Column("position", POSITION, primary_key=True, autoincrement=True),
        *_text("organization_id", "location_id"),
        sa.Column("device", sa.BigInteger(), nullable=False),
        *_text("printer_id", "name"),
        *_times("since", "until"),
    )
    _index("printer_problems", "organization", "organization_id", "until")
    _index("printer_problems", "device", "device")
    _index("printer_problems", "age", "until")


def _add_device_findings() -> None:
    op.create_table(
        "device_findings",
        sa.Column("position", POSITION, primary_key=True, autoincrement=True),
        *_text("organization_id", "location_id"),
        sa.Column("device", sa.BigInteger(), nullable=False),
        *_text("kind", "rule", "severity", "sentence"),
        *_times("since", "last_seen"),
        sa.Column("report", sa.BigInteger(), nullable=False),
    )
    _index("device_findings", "device", "device", "kind", "rule", unique=True)
    columns = ("organization_id", "rule", "location_id", "since", "device", "kind")
    _index("device_findings", "rule", *columns)
    columns = ("organization_id", "rule", "since", "kind", "device", "location_id")
    _index("device_findings", "begin", *columns)


def _add_judged_reports() -> None:
    """For each current binding and kind, add a row for the newest report that has content.

    ``rules_version`` 0 means that the report is not judged yet.
    """
    op.create_table(
        "judged_reports",
        sa.Column("device", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text(), primary_key=True),
        sa.Column("report", sa.BigInteger(), nullable=False),
        *_times("arrived_at"),
        sa.Column("rules_version", sa.Integer(), nullable=False),
        sa.Column("is_recent", sa.Boolean(), nullable=False),
    )
    _index("judged_reports", "version", "rules_version", "device")
    _index("judged_reports", "age", "is_recent", "arrived_at")
    for kind in ("network", "application"):
        op.execute(INSERT_JUDGED_REPORTS.bindparams(kind=kind))


def _add_sums() -> None:
    op.create_table(
        "counted_devices",
        sa.Column("device", sa.BigInteger(), primary_key=True, autoincrement=False),
        *_text("organization_id", "location_id", "platform", "version"),
        sa.Column("subjects", sa.JSON(), nullable=False),
    )
    key = ["organization_id", "location_id", "subject", "platform", "version"]
    op.create_table(
        "finding_counts",
        *(sa.Column(name, sa.Text(), primary_key=True) for name in key),
        sa.Column("devices", sa.Integer(), nullable=False),
        sqlite_with_rowid=False,
    )
    columns = ("organization_id", "subject", "location_id", "devices")
    _index("finding_counts", "subject", *columns)
    op.create_table(
        "finding_days",
        *(sa.Column(name, sa.Text(), primary_key=True) for name in key),
        sa.Column("day", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("change", sa.Integer(), nullable=False),
        sqlite_with_rowid=False,
    )
    _index("finding_days", "age", "day")
