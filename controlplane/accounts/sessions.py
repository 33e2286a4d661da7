"""Browser sessions. Each sign-in creates a session, which expires if it is not used.

The token of a session has 256 random bits. The database stores its SHA-256 hash, without salt.
"""

import secrets
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import case, delete, select, update
from sqlalchemy.orm import Session

from controlplane.accounts.throttle import network_of
from controlplane.accounts.users import increment_permissions_version
from controlplane.operation.permissions import hash_secret
from controlplane.storage.account_tables import SignInSession

LIFETIME: Final = timedelta(days=30)
"""Time between the last use of a session and its end."""
PROVIDER_LIFETIME: Final = timedelta(hours=12)
"""Like `LIFETIME`, for a session of an identity provider. It is shorter, because even an unused
session causes calls: the service checks each session with its provider every few minutes."""
VERIFY_EVERY: Final = timedelta(minutes=3)
"""Time between two checks of a session with its identity provider."""
VERIFIED_FOR: Final = timedelta(minutes=4, seconds=30)
"""A session of a provider is not valid for longer than this after the provider's last answer."""
TOUCHED_EVERY: Final = timedelta(minutes=1)
"""The last use of a session is stored at most once in this interval. The cookie is renewed at the
same time."""
SESSIONS_MAX: Final = 20
"""Maximum number of sessions of one user. A new session ends the least recently used one."""
USER_AGENT_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class ProviderSignIn:
    """A sign-in by an identity provider.

    ``subject`` is the user's id at the provider. The tokens are the provider's.
    """

    provider: str
    subject: str
    access_token: str
    refresh_token: str | None


def create(
    session: Session, row: SignInSession, now: datetime, sign_in: ProviderSignIn | None = None
) -> tuple[UUID, str]:
    """Create a session. Return its id and the token, which is not stored.

    Args:
        row: has the user, the organization, the browser, and whether there was a second factor.
        sign_in: None for a sign-in with a password.
    """
    _end_surplus_sessions(session, row.user_id, now)
    token = secrets.token_urlsafe(32)
    row.id, row.token_hash = uuid.uuid4(), hash_secret(token)
    row.user_agent = _printable(row.user_agent)[:USER_AGENT_MAX]
    row.created_at = row.last_used_at = now
    row.expires_at = now + (LIFETIME if sign_in is None else PROVIDER_LIFETIME)
    if sign_in is not None:
        row.provider, row.subject = sign_in.provider, sign_in.subject
        set_verified(row, sign_in.access_token, sign_in.refresh_token, now)
    session.add(row)
    session.flush()
    return row.id, token


def set_verified(
    row: SignInSession, access_token: str, refresh_token: str | None, now: datetime
) -> None:
    """Store that the provider has just confirmed the user, and the provider's newest tokens."""
    row.access_token, row.refresh_token = access_token, refresh_token
    row.verify_at, row.verified_until = now + VERIFY_EVERY, now + VERIFIED_FOR


def touch(session: Session, session_id: UUID, now: datetime) -> None:
    """Store the time of a use, and extend the session."""
    session.execute(
        update(SignInSession)
        .where(SignInSession.id == session_id, SignInSession.expires_at > now)
        .values(
            last_used_at=now,
            expires_at=case(
                (SignInSession.provider.is_(None), now + LIFETIME), else_=now + PROVIDER_LIFETIME
            ),
        )
    )


def unexpired_sessions(session: Session, user_id: UUID, now: datetime) -> Sequence[SignInSession]:
    """Return the sessions of the user that have not expired, most recently used first.

    Some may not be valid, for example because their identity provider does not answer.
    """
    query = select(SignInSession).where(
        SignInSession.user_id == user_id, SignInSession.expires_at > now
    )
    order = (SignInSession.last_used_at.desc(), SignInSession.id)
    return session.scalars(query.order_by(*order)).all()


def is_known_network(session: Session, user_id: UUID, address: str, now: datetime) -> bool:
    """Return whether the user has a session that was created in the network of ``address``."""
    network = network_of(address)
    return any(
        network_of(each.address) == network for each in unexpired_sessions(session, user_id, now)
    )


def end(session: Session, session_id: UUID, user_id: UUID) -> bool:
    """End a session. Returns False if the user has no such session."""
    row = session.get(SignInSession, session_id)
    if row is None or row.user_id != user_id:
        return False
    session.delete(row)
    increment_permissions_version(session, user_id)
    return True


def end_by_token(session: Session, token: str) -> None:
    query = select(SignInSession).where(SignInSession.token_hash == hash_secret(token))
    row = session.scalars(query).first()
    if row is not None:
        end(session, row.id, row.user_id)


def _end_surplus_sessions(session: Session, user_id: UUID, now: datetime) -> None:
    """End all expired sessions, and the user's least recently used ones, so that one more fits."""
    session.execute(delete(SignInSession).where(SignInSession.expires_at <= now))
    for row in unexpired_sessions(session, user_id, now)[SESSIONS_MAX - 1 :]:
        end(session, row.id, user_id)


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text)
