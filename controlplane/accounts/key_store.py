"""API keys in the database: made and revoked on the command line, recognised at each call."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from controlplane.accounts.api_keys import Caller, hash_key, new_key
from controlplane.storage.tables import ApiKey

DEFAULT_ORGANIZATION = "org-0001"
HINT_LENGTH = 4
USE_NOTED_EVERY = timedelta(minutes=1)
"""A use is written down at most this often: it must not make each reading a writing."""


@dataclass(frozen=True, slots=True)
class Recognised:
    caller: Caller
    is_use_due: bool


def create_key(
    session: Session,
    *,
    name: str,
    can_write: bool,
    locations: Sequence[str],
    organization_id: str,
    now: datetime,
) -> tuple[UUID, str]:
    """Return the id and the key itself, which is kept nowhere."""
    key = new_key()
    row = ApiKey(
        id=uuid.uuid4(),
        name=name,
        secret_hash=hash_key(key),
        hint=key[-HINT_LENGTH:],
        can_write=can_write,
        organization_id=organization_id,
        locations=sorted(set(locations)),
        created_at=now,
    )
    session.add(row)
    return row.id, key


def recognise(session: Session, key: str, now: datetime) -> Recognised | None:
    """Return whose key this is, or None if it is unknown or revoked."""
    query = select(ApiKey).where(ApiKey.secret_hash == hash_key(key), ApiKey.revoked_at.is_(None))
    row = session.scalars(query).first()
    if row is None:
        return None
    caller = Caller(row.id, row.organization_id, row.can_write, frozenset(row.locations))
    return Recognised(caller, row.last_used_at is None or now - row.last_used_at > USE_NOTED_EVERY)


def note_use(session: Session, key_id: UUID, now: datetime) -> None:
    session.execute(update(ApiKey).where(ApiKey.id == key_id).values(last_used_at=now))


def is_live(session: Session, key_id: UUID) -> bool:
    row = session.get(ApiKey, key_id)
    return row is not None and row.revoked_at is None


def list_keys(session: Session) -> Sequence[ApiKey]:
    return session.scalars(select(ApiKey).order_by(ApiKey.created_at)).all()


def revoke_key(session: Session, key_id: UUID, now: datetime) -> bool:
    """Return whether there is such a key. Revoking again changes nothing."""
    row = session.get(ApiKey, key_id)
    if row is None:
        return False
    row.revoked_at = row.revoked_at or now
    return True
