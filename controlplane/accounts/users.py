"""Users and their memberships in the database.

Each change of permissions increments ``permissions_version`` in the same transaction. The
cache of API keys and the open streams apply the change within seconds.
"""

import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from controlplane.storage.account_tables import (
    Identity,
    Membership,
    PendingSignIn,
    RecoveryCode,
    Role,
    SecondFactor,
    SignInSession,
    User,
)
from controlplane.storage.oauth_tables import OAuthCode, OAuthGrant, OAuthToken
from controlplane.storage.statements import change_rows
from controlplane.storage.tables import ApiKey

EMAIL_MAX: Final = 254
"""Maximum length of an address. RFC 5321, 4.5.3.1.3 permits 256, including two angle brackets."""
_EMAIL: Final = re.compile(r"[^\s@]+@[^\s@]+")


@dataclass(frozen=True, slots=True)
class Member:
    """A user with a membership in an organization."""

    user: User
    membership: Membership


def email_key(email: str) -> str:
    """Return the address in a form that ignores case."""
    return email.strip().casefold()


def require_email(email: str) -> str:
    """Return the trimmed address. Raises ValueError with a message for users."""
    address = email.strip()
    if not _EMAIL.fullmatch(address) or len(address) > EMAIL_MAX or not address.isprintable():
        raise ValueError(f"{email!r} is not an e-mail address")
    return address


def find_user(session: Session, email: str) -> User | None:
    return session.scalars(select(User).where(User.email_key == email_key(email))).first()


def add_user(session: Session, *, email: str, name: str, password_hash: str, now: datetime) -> User:
    """Add a user. Raises IntegrityError if the address exists."""
    user = User(
        id=uuid.uuid4(),
        email=email,
        email_key=email_key(email),
        name=name,
        password_hash=password_hash,
        permissions_version=0,
        created_at=now,
    )
    session.add(user)
    session.flush()
    return user


def set_password(session: Session, user: User, password_hash: str) -> None:
    """Set the password, and end all sessions and grants of the user.

    Someone else who knew the old password might have created these sessions and grants.
    """
    user.password_hash = password_hash
    end_sessions(session, user.id)


def end_sessions(session: Session, user_id: UUID) -> None:
    """End all sessions and grants of the user."""
    session.execute(delete(SignInSession).where(SignInSession.user_id == user_id))
    end_grants(session, user_id)
    increment_permissions_version(session, user_id)


def set_membership(
    session: Session,
    user_id: UUID,
    organization_id: str,
    *,
    role: Role,
    locations: Iterable[str],
    now: datetime,
    managed_by: str | None = None,
) -> None:
    """Add a membership, or change its role and locations.

    ``managed_by`` is the id of the identity provider that decides the role.
    """
    row = session.get(Membership, (user_id, organization_id))
    if row is None:
        row = Membership(user_id=user_id, organization_id=organization_id, created_at=now)
        session.add(row)
    row.role = role
    row.locations = sorted(set(locations))
    row.managed_by = managed_by
    increment_permissions_version(session, user_id)


def remove_membership(session: Session, user_id: UUID, organization_id: str, now: datetime) -> bool:
    """End a membership with its keys, sessions and grants.

    If it was the last membership of the user, delete the user.

    Returns whether the membership existed.
    """
    # The exchange of an OAuth code takes the same lock, so no grant is created meanwhile.
    lock_user(session, user_id)
    row = session.get(Membership, (user_id, organization_id))
    if row is None:
        return False
    session.delete(row)
    end_grants(session, user_id, organization_id)
    session.execute(
        update(ApiKey)
        .where(
            ApiKey.owner_id == user_id,
            ApiKey.organization_id == organization_id,
            ApiKey.revoked_at.is_(None),
        )
        .values(revoked_at=now)
    )
    session.execute(
        delete(SignInSession).where(
            SignInSession.user_id == user_id, SignInSession.organization_id == organization_id
        )
    )
    increment_permissions_version(session, user_id)
    session.flush()
    if not memberships(session, user_id):
        _delete_user(session, user_id)
    return True


def memberships(session: Session, user_id: UUID) -> Sequence[Membership]:
    """Return the memberships of the user, oldest first."""
    query = select(Membership).where(Membership.user_id == user_id)
    order = (Membership.created_at, Membership.organization_id)
    return session.scalars(query.order_by(*order)).all()


def members(session: Session, organization_id: str) -> list[Member]:
    """Return the members of an organization, ordered by e-mail address."""
    query = (
        select(User, Membership)
        .join(Membership, Membership.user_id == User.id)
        .where(Membership.organization_id == organization_id)
        .order_by(User.email_key)
    )
    return [Member(*row) for row in session.execute(query).all()]


def email_addresses(session: Session, ids: Iterable[UUID]) -> dict[UUID, str]:
    """Return the e-mail address of each existing user, by user id."""
    query = select(User.id, User.email).where(User.id.in_(list(ids)))
    return {row.id: row.email for row in session.execute(query)}


def lock_user(session: Session, user_id: UUID) -> None:
    """Lock the row of a user until the transaction ends."""
    session.execute(select(User.id).where(User.id == user_id).with_for_update())


def increment_permissions_version(session: Session, user_id: UUID) -> None:
    """Increment the user's ``permissions_version``.

    The database computes the new value, so that each of several concurrent changes is counted.
    """
    statement = update(User).where(User.id == user_id)
    change_rows(session, statement.values(permissions_version=User.permissions_version + 1))


def _delete_user(session: Session, user_id: UUID) -> None:
    for table in (SignInSession, Identity, SecondFactor, RecoveryCode, PendingSignIn):
        session.execute(delete(table).where(table.user_id == user_id))
    session.execute(delete(User).where(User.id == user_id))


def end_grants(session: Session, user_id: UUID, organization_id: str | None = None) -> None:
    """End the grants of the user, and delete the codes that are not exchanged yet.

    ``organization_id`` None means all organizations.
    """
    code_filters, grant_filters = [OAuthCode.user_id == user_id], [OAuthGrant.user_id == user_id]
    if organization_id is not None:
        code_filters.append(OAuthCode.organization_id == organization_id)
        grant_filters.append(OAuthGrant.organization_id == organization_id)
    grant_ids = list(session.scalars(select(OAuthGrant.id).where(*grant_filters)))
    session.execute(delete(OAuthToken).where(OAuthToken.grant_id.in_(grant_ids)))
    session.execute(delete(OAuthGrant).where(OAuthGrant.id.in_(grant_ids)))
    session.execute(delete(OAuthCode).where(*code_filters))
