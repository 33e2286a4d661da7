"""The ways to contact support, and the links between organizations and chats with support."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from controlplane.storage.tables import Base, Position


class SupportLink(Base):
    """A link between an organization and a chat with support. Only the hash of its token is stored.

    ``channel`` (the chat, not a `SupportChannel`) and ``requested_by`` are display texts from
    support. ``organization_id``, ``confirmed_at`` and ``confirmed_by``
    (`controlplane.operation.caller.Caller.user_id`) are written together when the link is
    confirmed. ``disconnected_at`` is written when the link ends, even if it was never confirmed.
    Each of these columns is written at most once.
    """

    __tablename__ = "support_links"
    id: Mapped[UUID] = mapped_column(primary_key=True)
    token_hash: Mapped[str] = mapped_column(unique=True)
    channel: Mapped[str]
    requested_by: Mapped[str]
    requested_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    organization_id: Mapped[str | None] = mapped_column(index=True)
    confirmed_at: Mapped[datetime | None]
    confirmed_by: Mapped[str | None]
    disconnected_at: Mapped[datetime | None]


class SupportChannel(Base):
    """A way to contact support, shown to every organization. Lists are ordered by ``position``."""

    __tablename__ = "support_channels"
    __table_args__ = (UniqueConstraint("kind", "address", name="support_channels_once"),)
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    kind: Mapped[str]
    address: Mapped[str]
    hours: Mapped[str | None]
