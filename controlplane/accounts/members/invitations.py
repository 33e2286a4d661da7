"""Invitations. With the link of an invitation, one user can become a member.

A link is valid for a day. It contains a code of 256 random bits. The database stores the SHA-256
hash of the code, without salt. The code is valid only while the user who created the invitation is
permitted to invite members.
"""

import secrets
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from controlplane.operation.permissions import hash_secret
from controlplane.storage.account_tables import Invitation, Membership

LIFETIME: Final = timedelta(hours=24)
INVITATIONS_MAX: Final = 100
"""Maximum number of open invitations of one organization."""


def invite(session: Session, row: Invitation, now: datetime) -> str:
    """Add an invitation and return its code. Only the code's hash is stored.

    ``row`` has all columns except ``id``, ``token_hash`` and the times.
    """
    code = secrets.token_urlsafe(32)
    row.id, row.token_hash = uuid.uuid4(), hash_secret(code)
    row.created_at, row.expires_at = now, now + LIFETIME
    session.add(row)
    session.flush()
    return code


def open_invitations(session: Session, organization_id: str, now: datetime) -> Sequence[Invitation]:
    """Return the open invitations, oldest first."""
    query = select(Invitation).where(
        Invitation.organization_id == organization_id, Invitation.expires_at > now
    )
    return session.scalars(query.order_by(Invitation.created_at, Invitation.id)).all()


def find(session: Session, code: str, now: datetime, *, lock: bool = False) -> Invitation | None:
    """Return the invitation of a code, or None if the code is not valid."""
    query = select(Invitation).where(
        Invitation.token_hash == hash_secret(code), Invitation.expires_at > now
    )
    row = session.scalars(query.with_for_update() if lock else query).first()
    if row is None:
        return None
    inviter = session.get(Membership, (row.invited_by, row.organization_id))
    can_invite = inviter is not None and inviter.role == "owner" and not inviter.locations
    return row if can_invite else None


def delete_expired(session: Session, now: datetime) -> None:
    session.execute(delete(Invitation).where(Invitation.expires_at <= now))
