"""Checks sessions with their identity provider: reserves the due sessions, and stores the results.

A session is reserved before the provider is called. So only one process calls the provider, and a
refresh token is used once. If the provider does not answer, the session stays stored, but it is not
valid after `SignInSession.verified_until`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.accounts import sessions, users
from controlplane.accounts.oidc.claims import Claims
from controlplane.accounts.oidc.members import apply_roles
from controlplane.accounts.oidc.providers import IdentityProvider
from controlplane.operation.audit_entries import Event, Subject, note, user_actor
from controlplane.storage.account_tables import SignInSession, User

RETRY_AFTER: Final = timedelta(seconds=60)
"""A reserved session is due again after this time, if its check has no result."""
RESERVED_MAX: Final = 16
"""Maximum number of sessions that one call reserves."""


@dataclass(frozen=True, slots=True)
class DueCheck:
    """A reserved session. ``subject`` is the user's id at the provider, which issued the tokens."""

    session_id: UUID
    provider: str
    subject: str
    access_token: str
    refresh_token: str | None


def reserve_due(session: Session, now: datetime) -> Sequence[DueCheck]:
    """Reserve due sessions, the longest overdue first."""
    query = select(SignInSession).where(
        SignInSession.verify_at <= now, SignInSession.expires_at > now
    )
    due = query.order_by(SignInSession.verify_at).limit(RESERVED_MAX)
    rows = session.scalars(due.with_for_update(skip_locked=True)).all()
    for row in rows:
        row.verify_at = now + RETRY_AFTER
    # In a row with `verify_at`, the provider, the subject and the access token are not None.
    return [
        DueCheck(
            row.id, row.provider or "", row.subject or "", row.access_token or "", row.refresh_token
        )
        for row in rows
    ]


def confirm(
    session: Session,
    check: DueCheck,
    provider: IdentityProvider,
    claims: Claims,
    *,
    tokens: tuple[str, str | None],
    now: datetime,
) -> None:
    """Store that the provider confirmed the user, and set the memberships of the user.

    The user's groups in ``claims`` determine the memberships. ``tokens`` are the newest access
    token and refresh token.
    """
    row = session.get(SignInSession, check.session_id, with_for_update=True)
    if row is None:
        return  # the session ended meanwhile
    sessions.set_verified(row, *tokens, now)
    session.flush()
    user = session.get_one(User, row.user_id)
    apply_roles(session, provider, user, provider.roles_of(claims.groups), now)


def refuse(session: Session, check: DueCheck, reason: str, now: datetime) -> None:
    """End a session whose user the provider refuses.

    The user's OAuth grants in the organization of the session end, too.
    """
    row = session.get(SignInSession, check.session_id, with_for_update=True)
    if row is None:
        return
    users.lock_user(session, row.user_id)  # so that no grant is created meanwhile
    user = session.get_one(User, row.user_id)
    event = Event("session.end", Subject("session", str(row.id)), reason)
    note(session, user_actor(user), event, organization_id=row.organization_id, now=now)
    users.end_grants(session, user.id, row.organization_id)
    sessions.end(session, row.id, user.id)


def retry_later(session: Session, check: DueCheck, now: datetime) -> None:
    """Check a session again later, because its provider did not answer.

    The check is due again after `RETRY_AFTER`, or earlier if the session becomes invalid before
    that. If the session is invalid already, the version of the user's permissions is incremented,
    so that the session's open streams end.
    """
    row = session.get(SignInSession, check.session_id)
    if row is None or row.verified_until is None:
        return
    if row.verified_until <= now:
        users.increment_permissions_version(session, row.user_id)
    else:
        row.verify_at = min(now + RETRY_AFTER, row.verified_until)
