"""API keys and refresh tokens of the retail API, and its signing keys."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from controlplane.storage.tables import Base


class RetailKey(Base):
    """An API key. ``can_write`` allows creating goods. ``hint`` is the end of the key."""

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
    """A refresh token. A ``family`` contains all tokens from one exchange of an API key.

    ``used_at`` is kept to detect a copied token that is used again.
    """

    __tablename__ = "retail_refresh_tokens"
    secret_hash: Mapped[str] = mapped_column(primary_key=True)
    family: Mapped[UUID] = mapped_column(index=True)
    key_id: Mapped[UUID] = mapped_column(index=True)
    expires_at: Mapped[datetime] = mapped_column(index=True)
    used_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]


class SigningKey(Base):
    """``secret`` is 32 bytes: of Ed25519 for access tokens, of HMAC-SHA256 for cursors."""

    __tablename__ = "signing_keys"
    id: Mapped[UUID] = mapped_column(primary_key=True)
    purpose: Mapped[str]
    secret: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime]
    retired_at: Mapped[datetime | None]
