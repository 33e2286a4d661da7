"""Adds the time at which an unused API key expires."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    _add_expiry_of_unused_keys()


def _add_expiry_of_unused_keys() -> None:
    expiry = sa.Column("unused_until", sa.DateTime(timezone=True), nullable=True)
    op.add_column("api_keys", expiry)
