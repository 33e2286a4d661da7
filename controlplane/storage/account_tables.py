"""Users, their memberships and sessions, invitations, and failed sign-ins.

`controlplane.storage.merchant.merchant_tables` defines organizations and locations. There are no
foreign keys: the code that writes a row checks its references.
"""

from datetime import datetime
from typing import Literal
from uuid import UUID

from sqlalchemy import Index, Text
from sqlalchemy.orm import Mapped, mapped_column

from controlplane.storage.tables import Base, Position

Role = Literal["owner", "manager", "viewer"]


class User(Base):
    """A user.

    Attributes:
        email: the address as it was entered.
        email_key: the address in a form that ignores case. It identifies the user.
        password_hash: argon2id hash in PHC format.
        permissions_version: incremented with each change of the user's permissions, so that caches
            detect the change.
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
    """The membership of a user in an organization.

    If ``locations`` is empty, the member has access to every location of the organization.
    """

    __tablename__ = "memberships"
    user_id: Mapped[UUID] = mapped_column(primary_key=True)
    organization_id: Mapped[str] = mapped_column(primary_key=True, index=True)
    role: Mapped[Role] = mapped_column(Text)
    locations: Mapped[list[str]]
    created_at: Mapped[datetime]


class SignInSession(Base):
    """A signed-in browser. The row is deleted when the session ends.

    A session is in one organization at a time: ``organization_id``. ``user_agent`` and ``address``
    describe the browser for display.
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
    """A sign-in attempt that failed, or whose result is not known yet.

    ``subject`` is the hash of an e-mail address or a network address. It is hashed because users
    might type a password into the field for the e-mail address.
    """

    __tablename__ = "sign_in_failures"
    __table_args__ = (Index("sign_in_failures_by_subject", "subject", "failed_at"),)
    position: Mapped[int] = mapped_column(Position, primary_key=True, autoincrement=True)
    subject: Mapped[str]
    failed_at: Mapped[datetime] = mapped_column(index=True)


class Invitation(Base):
    """A link with which one user can become a member. The row is deleted when the link is used.

    ``invited_by`` is the owner who created the link.
    """

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
