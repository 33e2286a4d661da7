"""API keys in the database."""

import secrets
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import bindparam, select, update
from sqlalchemy.orm import Session

from controlplane.operation.permissions import hash_secret
from controlplane.storage.statements import change_rows
from controlplane.storage.tables import ApiKey

PREFIX = "vck_"
"""The first characters of every API key."""
DEFAULT_ORGANIZATION = "org-0001"
HINT_LENGTH = 4
USES_NOTED_WITHIN = timedelta(minutes=1)
"""Maximum time until the first use of a key is in the database. The next poll for changes stores
it, usually within seconds."""


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that is not stored yet. ``secret`` is the key itself, which is never stored."""

    id: UUID
    secret: str
    name: str
    locations: tuple[str, ...]

    @property
    def hint(self) -> str:
        return self.secret[-HINT_LENGTH:]


def new_key(*, name: str, locations: Sequence[str]) -> NewKey:
    secret = PREFIX + secrets.token_urlsafe(32)
    return NewKey(uuid.uuid4(), secret, name, tuple(sorted(set(locations))))


def add_keys(
    session: Session,
    keys: Iterable[NewKey],
    *,
    can_write: bool,
    organization_id: str,
    now: datetime,
    owner_id: UUID | None = None,
    unused_until: datetime | None = None,
) -> None:
    """Store new keys.

    Args:
        owner_id: the user whose permissions the keys have, if any.
        unused_until: time at which keys that were never used are revoked. None means that they are
            not revoked.
    """
    for key in keys:
        row = ApiKey(
            id=key.id,
            name=key.name,
            secret_hash=hash_secret(key.secret),
            hint=key.hint,
            can_write=can_write,
            organization_id=organization_id,
            locations=list(key.locations),
            created_at=now,
            owner_id=owner_id,
            unused_until=unused_until,
        )
        session.add(row)


def create_key(
    session: Session,
    *,
    name: str,
    can_write: bool,
    locations: Sequence[str],
    organization_id: str,
    now: datetime,
) -> tuple[UUID, str]:
    """Create a key. Return its id and the key itself, which is not stored."""
    key = new_key(name=name, locations=locations)
    add_keys(session, [key], can_write=can_write, organization_id=organization_id, now=now)
    return key.id, key.secret


def note_uses(session: Session, uses: Mapping[UUID, datetime]) -> None:
    """Store when each of these keys was last used."""
    # Sorted, so that two processes lock the rows in the same order and cannot deadlock.
    rows = [{"key": key_id, "used": uses[key_id]} for key_id in sorted(uses)]
    statement = (
        update(ApiKey.__table__)  # type: ignore[arg-type]
        .where(ApiKey.id == bindparam("key"))
        .values(last_used_at=bindparam("used"))
    )
    session.connection().execute(statement, rows)


def revoke_unused(session: Session, now: datetime) -> int:
    """Revoke the keys that were not used in time. Return the number of revoked keys."""
    statement = update(ApiKey).where(
        ApiKey.unused_until < now - USES_NOTED_WITHIN,
        ApiKey.last_used_at.is_(None),
        ApiKey.revoked_at.is_(None),
    )
    return change_rows(session, statement.values(revoked_at=now))


def revoked_keys(session: Session) -> frozenset[UUID]:
    return frozenset(session.scalars(select(ApiKey.id).where(ApiKey.revoked_at.is_not(None))))


def list_keys(session: Session) -> Sequence[ApiKey]:
    return session.scalars(select(ApiKey).order_by(ApiKey.created_at)).all()


def revoke_key(session: Session, key_id: UUID, now: datetime) -> None:
    """Revoke a key. Revoking it again changes nothing."""
    row = session.get_one(ApiKey, key_id)
    row.revoked_at = row.revoked_at or now
