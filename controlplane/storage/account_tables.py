"""Who may sign in: people, what they are in an organization, their sessions, and failed tries.

An organization and its locations are `controlplane.storage.merchant.merchant_tables`'. As
elsewhere there are no foreign keys: who writes checks.
"""

from datetime import datetime
from typing import Literal
from uuid import UUID

from sqlalchemy import Index, Text
from sqlalchemy.orm import Mapped, mapped_column

from controlplane.storage.tables import Base, Position

Role = Literal["owner", "manager", "viewer"]


class User(Base):
    """``email_key`` is the address without a difference of case; ``email`` is it as it was told.
    ``password_hash`` is argon2id's in its own notation (PHC).

    ``permissions_version`` goes up with each change of what the user's credentials may do, in the
    transaction of the change: who remembers a caller compares it.
    """

    __tablename__ = "users"
    id: Mapped[UUID] = mapped_column(primary_key=True)
    email: Mapped[str]
    email_key: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str]
    password_hash: Mapped[str]
    permissions_version: Mapped[int]
    created_at: Mapped[datetime]


class Membership(Base):
    """``locations`` empty means every location of the organization, as for an API key."""

    __tablename__ = "memberships"
    user_id: Mapped[UUID] = mapped_column(primary_key=True)
    organization_id: Mapped[str] = mapped_column(primary_key=True, index=True)
    role: Mapped[Role] = mapped_column(Text)
    locations: Mapped[list[str]]
    created_at: Mapped[datetime]


class SignInSession(Base):
    """A browser that is signed in, to one organization at a time. Its row goes when it ends.

    ``user_agent`` and ``address`` are as the client told them, for people.
    """

    __tablename__ = "sessions"
    id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID] = mapped_column(index=True)
    organization_id: Mapped[str]
    token_hash: Mapped[str] = mapped_column(unique=True)
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)
    user_agent: Mapped[str]
    address: Mapped[str]


class SignInFailure(Base):
    """A try to sign in that failed, or is not decided yet. ``subject`` is an account or an address,
    hashed: people type passwords where an address is asked for."""

    __tablename__ = "sign_in_failures"
    __table_args__ = (Index("sign_in_failures_by_subject", "subject", "failed_at"),)
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    subject: Mapped[str]
    failed_at: Mapped[datetime] = mapped_column(index=True)


class Invitation(Base):
    """Somebody may become a member, by a link that is used once. Its row goes when it is.

    ``invited_by`` is the owner who made it."""

    __tablename__ = "invitations"
    id: Mapped[UUID] = mapped_column(primary_key=True)
    organization_id: Mapped[str] = mapped_column(index=True)
    email: Mapped[str]
    role: Mapped[Role] = mapped_column(Text)
    locations: Mapped[list[str]]
    token_hash: Mapped[str] = mapped_column(unique=True)
    invited_by: Mapped[UUID]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)
