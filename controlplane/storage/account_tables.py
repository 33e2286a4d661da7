"""Users, their memberships and sessions, invitations, and failed sign-ins.

`controlplane.storage.merchant.merchant_tables` defines organizations and locations. There are no
foreign keys: the code that writes a row checks its references.
"""

from datetime import datetime
from typing import Literal
from uuid import UUID

from sqlalchemy import BigInteger, Index, Text, false
from sqlalchemy.orm import Mapped, mapped_column

from controlplane.storage.tables import Base, Position

Role = Literal["owner", "manager", "viewer"]


class User(Base):
    """A user.

    Attributes:
        email: the address as it was entered.
        email_key: the address in a form that ignores case. It identifies the user.
        password_hash: argon2id hash in PHC format. Empty for an account without a password.
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
    ``managed_by`` is the id of the identity provider that decides the role. Only sessions of this
    provider may use the membership. If ``managed_by`` is None, only sessions without a provider may
    use the membership (`SignInSession.provider`).
    """

    __tablename__ = "memberships"
    user_id: Mapped[UUID] = mapped_column(primary_key=True)
    organization_id: Mapped[str] = mapped_column(primary_key=True, index=True)
    role: Mapped[Role] = mapped_column(Text)
    locations: Mapped[list[str]]
    created_at: Mapped[datetime]
    managed_by: Mapped[str | None]


class SignInSession(Base):
    """A signed-in browser. The row is deleted when the session ends.

    A session is in one organization at a time: ``organization_id``. ``user_agent`` and ``address``
    describe the browser for display.

    Attributes:
        has_second_factor: whether the user signed in with a second factor.
        provider: id of the identity provider of the sign-in. After a sign-in with a password, this
            column and all following columns are None.
        subject: the user's id at the provider.
        access_token: for calls of the provider's userinfo endpoint.
        refresh_token: for new access tokens, if the provider issued one.
        verify_at: when the provider must confirm the user again.
        verified_until: until when the session is valid without a new confirmation.
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
    has_second_factor: Mapped[bool] = mapped_column(server_default=false())
    provider: Mapped[str | None]
    subject: Mapped[str | None]
    access_token: Mapped[str | None]
    refresh_token: Mapped[str | None]
    verify_at: Mapped[datetime | None] = mapped_column(index=True)
    verified_until: Mapped[datetime | None]


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


class Identity(Base):
    """The account of a user at an identity provider (OpenID Connect Core, 2: ``iss``, ``sub``)."""

    __tablename__ = "identities"
    issuer: Mapped[str] = mapped_column(primary_key=True)
    subject: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[UUID] = mapped_column(index=True)
    created_at: Mapped[datetime]


class SecondFactor(Base):
    """The secret from which a user's one-time passwords are computed (RFC 6238).

    Attributes:
        secret: Base32.
        is_confirmed: whether the user has entered a code. From then on, the factor is required.
        last_step: time step of the last accepted code. Codes of earlier steps are refused.
    """

    __tablename__ = "second_factors"
    user_id: Mapped[UUID] = mapped_column(primary_key=True)
    secret: Mapped[str]
    is_confirmed: Mapped[bool]
    last_step: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime]


class RecoveryCode(Base):
    """A code that replaces a one-time password once. The row is deleted when the code is used."""

    __tablename__ = "recovery_codes"
    code_hash: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[UUID] = mapped_column(index=True)


class PendingSignIn(Base):
    """A sign-in with a correct password that still needs the second factor.

    ``password_hash`` is the hash against which the password was verified. If the user's hash is
    different when the second factor is entered, the sign-in ends.
    ``return_query`` is the query of the OAuth page to return to, or empty for the console.
    """

    __tablename__ = "pending_sign_ins"
    token_hash: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[UUID] = mapped_column(index=True)
    password_hash: Mapped[str]
    return_query: Mapped[str]
    expires_at: Mapped[datetime] = mapped_column(index=True)


class SignInPolicy(Base):
    """How members of an organization sign in.

    Without a row, passwords are accepted, and a second factor is optional.
    """

    __tablename__ = "sign_in_policies"
    organization_id: Mapped[str] = mapped_column(primary_key=True)
    accepts_passwords: Mapped[bool]
    requires_second_factor: Mapped[bool]
