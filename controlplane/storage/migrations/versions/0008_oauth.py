"""Programs that people let read, and their tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

Moment = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "oauth_clients",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("redirect_uris", sa.JSON, nullable=False),
        sa.Column("created_at", Moment, nullable=False, index=True),
        sa.Column("granted_at", Moment),
    )
    op.create_table(
        "oauth_codes",
        sa.Column("code_hash", sa.Text, primary_key=True),
        sa.Column("client_id", sa.Text, nullable=False),
        sa.Column("user_id", sa.Uuid, nullable=False, index=True),
        sa.Column("organization_id", sa.Text, nullable=False),
        sa.Column("redirect_uri", sa.Text, nullable=False),
        sa.Column("code_challenge", sa.Text, nullable=False),
        sa.Column("expires_at", Moment, nullable=False, index=True),
    )
    op.create_table(
        "oauth_grants",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("client_id", sa.Text, nullable=False, index=True),
        sa.Column("user_id", sa.Uuid, nullable=False, index=True),
        sa.Column("organization_id", sa.Text, nullable=False),
        sa.Column("code_hash", sa.Text, nullable=False, unique=True),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("last_used_at", Moment, nullable=False),
        sa.Column("expires_at", Moment, nullable=False, index=True),
    )
    op.create_table(
        "oauth_tokens",
        sa.Column("token_hash", sa.Text, primary_key=True),
        sa.Column("grant_id", sa.Uuid, nullable=False, index=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("expires_at", Moment, nullable=False),
        sa.Column("used_at", Moment),
    )
