"""Sign-ins with a correct password that still need the second factor."""

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from controlplane.accounts.second_factor import codes
from controlplane.accounts.sign_in_policy import requires_second_factor
from controlplane.accounts.users import memberships
from controlplane.operation.permissions import hash_secret
from controlplane.storage.account_tables import PendingSignIn, User

LIFETIME: Final = timedelta(minutes=10)
PENDING_MAX: Final = 5
"""Maximum number of pending sign-ins of a user. A new one ends the oldest."""


def is_needed(session: Session, user_id: UUID) -> bool:
    """Return whether the user must enter a code, or must first set up a second factor."""
    return codes.has_factor(session, user_id) or requires_second_factor(session, user_id)


def begin(session: Session, user: User, return_query: str, now: datetime) -> str:
    """Store a sign-in, and return its token.

    For a user without a second factor, also store a new secret, with which the user sets it up.
    ``return_query`` is the query of the OAuth page to which the user returns, or empty.
    """
    session.execute(delete(PendingSignIn).where(PendingSignIn.expires_at <= now))
    for row in _pending_of(session, user.id)[PENDING_MAX - 1 :]:
        session.delete(row)
    if not codes.has_factor(session, user.id):
        codes.begin(session, user.id, now)
    token = secrets.token_urlsafe(32)
    session.add(
        PendingSignIn(
            token_hash=hash_secret(token),
            user_id=user.id,
            password_hash=user.password_hash,
            return_query=return_query,
            expires_at=now + LIFETIME,
        )
    )
    session.flush()
    return token


def find(
    session: Session, token: str | None, now: datetime, *, lock: bool = False
) -> tuple[PendingSignIn, User] | None:
    """Return the pending sign-in of a token, and its user. Return None if it is not valid.

    A pending sign-in is not valid after a change of the user's password. With ``lock``, the row of
    the user is locked until the transaction ends.
    """
    if token is None:
        return None
    row = session.get(PendingSignIn, hash_secret(token))
    if row is None or row.expires_at <= now:
        return None
    user = session.get(User, row.user_id, with_for_update=lock or None, populate_existing=lock)
    if user is None or user.password_hash != row.password_hash:
        return None
    return row, user


def end(session: Session, row: PendingSignIn) -> None:
    session.delete(row)


def organization_of(session: Session, user_id: UUID) -> str | None:
    """Return the organization of the user's oldest membership, or None without a membership.

    The audit log of this organization gets the entries of the sign-in.
    """
    user_memberships = memberships(session, user_id)
    return user_memberships[0].organization_id if user_memberships else None


def _pending_of(session: Session, user_id: UUID) -> Sequence[PendingSignIn]:
    query = select(PendingSignIn).where(PendingSignIn.user_id == user_id)
    return session.scalars(query.order_by(PendingSignIn.expires_at.desc())).all()
