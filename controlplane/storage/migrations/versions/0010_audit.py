"""The audit log, and invitations to an organization."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

Position = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Moment = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "audit_entries",
        sa.Column("position", Position, primary_key=True, autoincrement=True),
        sa.Column("at", Moment, nullable=False, index=True),
        sa.Column("organization_id", sa.Text),
        sa.Column("actor_kind", sa.Text, nullable=False),
        sa.Column("actor_id", sa.Uuid),
        sa.Column("actor_name", sa.Text, nullable=False),
        sa.Column("credential_kind", sa.Text, nullable=False),
        sa.Column("credential_id", sa.Uuid),
        sa.Column("credential_hint", sa.Text, nullable=False),
        sa.Column("operation", sa.Text, nullable=False),
        sa.Column("subject_kind", sa.Text, nullable=False),
        sa.Column("subject_id", sa.Text, nullable=False),
        sa.Column("subject_name", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
    )
    op.create_index(
        "audit_entries_by_organization", "audit_entries", ["organization_id", "position"]
    )
    op.create_table(
        "invitations",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("organization_id", sa.Text, nullable=False, index=True),
        sa.Column("email", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("locations", sa.JSON, nullable=False),
        sa.Column("token_hash", sa.Text, nullable=False, unique=True),
        sa.Column("invited_by", sa.Uuid, nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("expires_at", Moment, nullable=False, index=True),
    )
