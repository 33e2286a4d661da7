"""Links between organizations and chats with support, in the database.

``channel`` describes the chat (`SupportLink.channel`). A token has 256 random bits, so the
database stores its SHA-256 hash without salt. The token itself is shown once.
"""

import secrets
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import and_, delete, or_, select
from sqlalchemy.orm import Session

from controlplane.operation.permissions import hash_secret
from controlplane.operation.records import record_of
from controlplane.storage.support_tables import SupportLink
from controlplane.support.messages import Link, LinkState

TOKEN_LIFE: Final = timedelta(hours=24)
RETENTION: Final = timedelta(days=30)
"""Time for which an expired or ended link is kept. During this time, a call with the token of the
link returns the state of the link.
"""
LISTED_MAX: Final = 100
"""Maximum number of links in one reply."""


@dataclass(frozen=True, slots=True)
class NewLink:
    """A new link. ``token`` is not stored."""

    id: UUID
    token: str
    expires_at: datetime


def make_link(session: Session, *, channel: str, requested_by: str, now: datetime) -> NewLink:
    """Create the link of a chat, with its token.

    Also deletes the links that ended or expired more than `RETENTION` ago.
    """
    _delete_ended(session, now - RETENTION)
    new_link = NewLink(uuid.uuid4(), secrets.token_urlsafe(32), now + TOKEN_LIFE)
    session.add(
        SupportLink(
            id=new_link.id,
            token_hash=hash_secret(new_link.token),
            channel=channel,
            requested_by=requested_by,
            requested_at=now,
            expires_at=new_link.expires_at,
        )
    )
    return new_link


def find_link(session: Session, token: str, *, lock: bool = False) -> SupportLink | None:
    """Return the link of a token. ``lock`` serializes calls with the same token."""
    query = select(SupportLink).where(SupportLink.token_hash == hash_secret(token))
    return session.scalars(query.with_for_update() if lock else query).first()


def state_of(link: SupportLink, now: datetime) -> LinkState:
    if link.disconnected_at is not None:
        return "disconnected"
    if link.confirmed_at is not None:
        return "confirmed"
    return "waiting" if now < link.expires_at else "expired"


def confirmed_links(session: Session, organizations: Collection[str]) -> Sequence[SupportLink]:
    """Return the confirmed links of organizations, newest first."""
    query = (
        select(SupportLink)
        .where(
            SupportLink.organization_id.in_(organizations), SupportLink.disconnected_at.is_(None)
        )
        .order_by(SupportLink.confirmed_at.desc(), SupportLink.id)
        .limit(LISTED_MAX)
    )
    return session.scalars(query).all()


def all_links(session: Session) -> Sequence[SupportLink]:
    """Return all stored links, newest first."""
    order = (SupportLink.requested_at.desc(), SupportLink.id)
    return session.scalars(select(SupportLink).order_by(*order)).all()


def end_link(session: Session, link_id: UUID, now: datetime) -> bool:
    """End a link on behalf of support. Return False for an unknown, expired or ended link."""
    link = session.get(SupportLink, link_id, with_for_update=True)
    if link is None or state_of(link, now) not in {"waiting", "confirmed"}:
        return False
    link.disconnected_at = now
    return True


def link_record(link: SupportLink, now: datetime) -> Link:
    return record_of(Link, link, state=state_of(link, now), confirmed_by_id=link.confirmed_by)


def _delete_ended(session: Session, before: datetime) -> None:
    has_expired = and_(SupportLink.confirmed_at.is_(None), SupportLink.expires_at < before)
    session.execute(
        delete(SupportLink).where(or_(has_expired, SupportLink.disconnected_at < before))
    )
