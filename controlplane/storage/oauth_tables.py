"""OAuth clients, codes, grants and tokens.

Only hashes of codes and tokens are stored. There are no foreign keys. Before the codes, grants or
tokens of a user are changed, the row of the user is locked, so that changes for one user are
serialized.
"""

from datetime import datetime
from typing import Literal
from uuid import UUID

from sqlalchemy import Text
from sqlalchemy.orm import Mapped, mapped_column

from controlplane.storage.tables import Base

TokenKind = Literal["access", "refresh"]


class OAuthClient(Base):
    """A registered client. ``name`` is chosen by the client and not verified.

    ``granted_at`` is the time of its last grant, or None if it never had one.
    """

    __tablename__ = "oauth_clients"
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    redirect_uris: Mapped[list[str]]
    created_at: Mapped[datetime] = mapped_column(index=True)
    granted_at: Mapped[datetime | None]


class OAuthCode(Base):
    """An authorization code that is not exchanged yet (RFC 6749, 4.1.2).

    ``code_challenge`` uses S256 (RFC 7636).
    """

    __tablename__ = "oauth_codes"
    code_hash: Mapped[str] = mapped_column(primary_key=True)
    client_id: Mapped[str]
    user_id: Mapped[UUID] = mapped_column(index=True)
    organization_id: Mapped[str]
    redirect_uri: Mapped[str]
    code_challenge: Mapped[str]
    expires_at: Mapped[datetime] = mapped_column(index=True)


class OAuthGrant(Base):
    """The consent of a user to a client. It is created when a code is exchanged for tokens.

    ``code_hash`` is the hash of that code. A second use of the code ends the grant.
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
    """A token.

    ``used_at`` is when a refresh token was exchanged. A second exchange of this token ends the
    grant. For an access token, ``used_at`` is always None.
    """

    __tablename__ = "oauth_tokens"
    token_hash: Mapped[str] = mapped_column(primary_key=True)
    grant_id: Mapped[UUID] = mapped_column(index=True)
    kind: Mapped[TokenKind] = mapped_column(Text)
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
