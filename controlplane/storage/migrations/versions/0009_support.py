"""Support: its channels, and what is linked with an organization."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

Position = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Moment = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "support_links",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("token_hash", sa.Text, nullable=False, unique=True),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("asked_by", sa.Text, nullable=False),
        sa.Column("asked_at", Moment, nullable=False),
        sa.Column("expires_at", Moment, nullable=False),
        sa.Column("organization_id", sa.Text, index=True),
        sa.Column("confirmed_at", Moment),
        sa.Column("confirmed_by", sa.Text),
        sa.Column("disconnected_at", Moment),
    )
    op.create_table(
        "support_channels",
        sa.Column("position", Position, primary_key=True, autoincrement=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("hours", sa.Text),
        sa.UniqueConstraint("kind", "address", name="support_channels_once"),
    )
