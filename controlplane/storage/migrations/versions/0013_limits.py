"""Adds a table with the size of the reports of each day, and two indexes by age for retention."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    _add_report_volumes()
    _add_indexes_by_age()


def _add_report_volumes() -> None:
    op.create_table(
        "report_volumes",
        sa.Column("organization_id", sa.Text(), primary_key=True),
        sa.Column("instance", sa.Text(), primary_key=True),
        sa.Column("day", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("stored_bytes", sa.BigInteger(), nullable=False),
    )


def _add_indexes_by_age() -> None:
    op.create_index("reports_by_age", "reports", ["created_at", "position"])
    op.create_index("requests_by_age", "requests", ["created_at", "position"])
