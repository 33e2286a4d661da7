"""API keys in the database: made and revoked on the command line, recognised at each call."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import bindparam, select, update
from sqlalchemy.orm import Session

from controlplane.accounts.api_keys import Caller, hash_key, new_key
from controlplane.storage.tables import ApiKey

DEFAULT_ORGANIZATION = "org-0001"
HINT_LENGTH = 4


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


def recognise(session: Session, key: str) -> Caller | None:
    """Return whose key this is, or None if it is unknown or revoked."""
    query = select(ApiKey).where(ApiKey.secret_hash == hash_key(key), ApiKey.revoked_at.is_(None))
    row = session.scalars(query).first()
    if row is None:
        return None
    return Caller(row.id, row.organization_id, row.can_write, frozenset(row.locations))


def note_uses(session: Session, uses: Mapping[UUID, datetime]) -> None:
    """Write down when each of these keys was last used."""
    rows = [{"key": key_id, "used": used_at} for key_id, used_at in uses.items()]
    statement = (
        update(ApiKey.__table__)  # type: ignore[arg-type]
        .where(ApiKey.id == bindparam("key"))
        .values(last_used_at=bindparam("used"))
    )
    session.connection().execute(statement, rows)


def revoked_keys(session: Session) -> frozenset[UUID]:
    return frozenset(session.scalars(select(ApiKey.id).where(ApiKey.revoked_at.is_not(None))))


def list_keys(session: Session) -> Sequence[ApiKey]:
    return session.scalars(select(ApiKey).order_by(ApiKey.created_at)).all()


def revoke_key(session: Session, key_id: UUID, now: datetime) -> bool:
    """Return whether there is such a key. Revoking again changes nothing."""
    row = session.get(ApiKey, key_id)
    if row is None:
        return False
    row.revoked_at = row.revoked_at or now
    return True
