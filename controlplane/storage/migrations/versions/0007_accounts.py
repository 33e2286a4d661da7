"""People who sign in, and the API keys that are theirs."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

Position = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Moment = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "users",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("email", sa.Text, nullable=False),
        sa.Column("email_key", sa.Text, nullable=False, unique=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("password_hash", sa.Text, nullable=False),
        sa.Column("permissions_version", sa.Integer, nullable=False),
        sa.Column("created_at", Moment, nullable=False),
    )
    op.create_table(
        "memberships",
        sa.Column("user_id", sa.Uuid, primary_key=True),
        sa.Column("organization_id", sa.Text, primary_key=True, index=True),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("locations", sa.JSON, nullable=False),
        sa.Column("created_at", Moment, nullable=False),
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("user_id", sa.Uuid, nullable=False, index=True),
        sa.Column("organization_id", sa.Text, nullable=False),
        sa.Column("token_hash", sa.Text, nullable=False, unique=True),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("last_used_at", Moment, nullable=False),
        sa.Column("expires_at", Moment, nullable=False, index=True),
        sa.Column("user_agent", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
    )
    op.create_table(
        "sign_in_failures",
        sa.Column("position", Position, primary_key=True, autoincrement=True),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("failed_at", Moment, nullable=False, index=True),
    )
    op.create_index("sign_in_failures_by_subject", "sign_in_failures", ["subject", "failed_at"])
    op.add_column("api_keys", sa.Column("owner_id", sa.Uuid))
    op.create_index("ix_api_keys_owner_id", "api_keys", ["owner_id"])
