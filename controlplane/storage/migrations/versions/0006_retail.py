"""The clients of the retail API: keys, refresh tokens, and what the service signs with."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

Moment = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "retail_keys",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("secret_hash", sa.Text, nullable=False, unique=True),
        sa.Column("hint", sa.Text, nullable=False),
        sa.Column("can_write", sa.Boolean, nullable=False),
        sa.Column("organization_id", sa.Text, nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("revoked_at", Moment),
    )
    op.create_table(
        "retail_refresh_tokens",
        sa.Column("secret_hash", sa.Text, primary_key=True),
        sa.Column("family", sa.Uuid, nullable=False, index=True),
        sa.Column("key_id", sa.Uuid, nullable=False, index=True),
        sa.Column("expires_at", Moment, nullable=False, index=True),
        sa.Column("used_at", Moment),
        sa.Column("ended_at", Moment),
    )
    op.create_table(
        "signing_keys",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("purpose", sa.Text, nullable=False),
        sa.Column("secret", sa.LargeBinary, nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("retired_at", Moment),
    )
