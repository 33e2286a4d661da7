"""What people let programs read: the programs (clients), codes, grants and their tokens.

Codes and tokens are kept hashed. As elsewhere there are no foreign keys: who writes checks, and
holds the row of the person first, so that what is of one person is changed in turn.
"""

from datetime import datetime
from typing import Literal
from uuid import UUID

from sqlalchemy import Text
from sqlalchemy.orm import Mapped, mapped_column

from controlplane.storage.tables import Base

TokenKind = Literal["access", "refresh"]


class OAuthClient(Base):
    """A program that registered itself. ``name`` is what it calls itself: nobody checked it.

    ``granted_at`` is when somebody last let it read, None where nobody did.
    """

    __tablename__ = "oauth_clients"
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    redirect_uris: Mapped[list[str]]
    created_at: Mapped[datetime] = mapped_column(index=True)
    granted_at: Mapped[datetime | None]


class OAuthCode(Base):
    """An authorization code that was not exchanged yet (RFC 6749, 4.1.2), with what it is bound to.
    ``code_challenge`` is an S256 one (RFC 7636)."""

    __tablename__ = "oauth_codes"
    code_hash: Mapped[str] = mapped_column(primary_key=True)
    client_id: Mapped[str]
    user_id: Mapped[UUID] = mapped_column(index=True)
    organization_id: Mapped[str]
    redirect_uri: Mapped[str]
    code_challenge: Mapped[str]
    expires_at: Mapped[datetime] = mapped_column(index=True)


class OAuthGrant(Base):
    """What a person let a program read, and the family of tokens that came of one code.

    ``code_hash`` is that code's: who shows it again ends the grant.
    """

    __tablename__ = "oauth_grants"
    id: Mapped[UUID] = mapped_column(primary_key=True)
    client_id: Mapped[str] = mapped_column(index=True)
    user_id: Mapped[UUID] = mapped_column(index=True)
    organization_id: Mapped[str]
    code_hash: Mapped[str] = mapped_column(unique=True)
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)


class OAuthToken(Base):
    """``used_at`` is when a refresh token was exchanged: who shows it again ends the grant."""

    __tablename__ = "oauth_tokens"
    token_hash: Mapped[str] = mapped_column(primary_key=True)
    grant_id: Mapped[UUID] = mapped_column(index=True)
    kind: Mapped[TokenKind] = mapped_column(Text)
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
