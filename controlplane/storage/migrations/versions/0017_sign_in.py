"""Adds identity providers and second factors to sign-in."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.add_column("memberships", sa.Column("managed_by", sa.Text(), nullable=True))
    _extend_sessions()
    _add_identities()
    _add_second_factors()
    op.create_table(
        "sign_in_policies",
        sa.Column("organization_id", sa.Text(), primary_key=True),
        sa.Column("accepts_passwords", sa.Boolean(), nullable=False),
        sa.Column("requires_second_factor", sa.Boolean(), nullable=False),
    )


def _extend_sessions() -> None:
    op.add_column(
        "sessions",
        sa.Column("has_second_factor", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
    for name in ("provider", "subject", "access_token", "refresh_token"):
        op.add_column("sessions", sa.Column(name, sa.Text(), nullable=True))
    for name in ("verify_at", "verified_until"):
        op.add_column("sessions", sa.Column(name, sa.DateTime(timezone=True), nullable=True))
    op.create_index("ix_sessions_verify_at", "sessions", ["verify_at"])


def _add_identities() -> None:
    op.create_table(
        "identities",
        sa.Column("issuer", sa.Text(), primary_key=True),
        sa.Column("subject", sa.Text(), primary_key=True),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_identities_user_id", "identities", ["user_id"])


def _add_second_factors() -> None:
    op.create_table(
        "second_factors",
        sa.Column("user_id", sa.Uuid(), primary_key=True),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("is_confirmed", sa.Boolean(), nullable=False),
        sa.Column("last_step", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "recovery_codes",
        sa.Column("code_hash", sa.Text(), primary_key=True),
        sa.Column("user_id", sa.Uuid(), nullable=False),
    )
    op.create_index("ix_recovery_codes_user_id", "recovery_codes", ["user_id"])
    op.create_table(
        "pending_sign_ins",
        sa.Column("token_hash", sa.Text(), primary_key=True),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("return_query", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_pending_sign_ins_user_id", "pending_sign_ins", ["user_id"])
    op.create_index("ix_pending_sign_ins_expires_at", "pending_sign_ins", ["expires_at"])
