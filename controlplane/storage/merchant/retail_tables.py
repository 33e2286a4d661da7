"""API keys and refresh tokens of the retail API, and its signing keys."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from controlplane.storage.tables import Base


class RetailKey(Base):
    """An API key. ``can_write`` allows creating goods. ``hint`` is its last four characters."""

    __tablename__ = "retail_keys"
    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    secret_hash: Mapped[str] = mapped_column(unique=True)
    hint: Mapped[str]
    can_write: Mapped[bool]
    organization_id: Mapped[str]
    created_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]


class RefreshToken(Base):
    """A refresh token. All tokens from one exchange of an API key have the same ``family``.

    A used token is kept with ``used_at``, so that the service detects a second use. The token may
    then have been stolen, so the service sets ``ended_at`` of all tokens of the family. Tokens with
    ``ended_at`` are no longer valid.
    """

    __tablename__ = "retail_refresh_tokens"
    secret_hash: Mapped[str] = mapped_column(primary_key=True)
    family: Mapped[UUID] = mapped_column(index=True)
    key_id: Mapped[UUID] = mapped_column(index=True)
    expires_at: Mapped[datetime] = mapped_column(index=True)
    used_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]


class SigningKey(Base):
    """A secret of 32 bytes: an Ed25519 key for access tokens, or an HMAC-SHA256 key for cursors.

    ``purpose`` is "access tokens" or "cursors". A key with ``retired_at`` is no longer used.
    """

    __tablename__ = "signing_keys"
    id: Mapped[UUID] = mapped_column(primary_key=True)
    purpose: Mapped[str]
    secret: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime]
    retired_at: Mapped[datetime | None]
