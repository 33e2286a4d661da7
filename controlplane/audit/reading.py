"""The audit log as it is read: newest first, by who did it and what it was about."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Select, func, or_, select
from sqlalchemy.orm import Session

from controlplane.storage.audit_tables import AuditEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """``by`` is part of a name, or the end of an API key; ``area`` the word before an operation's
    point; ``before`` the position from which a page goes on. None wants all.
    """

    by: str | None = None
    area: str | None = None
    since: datetime | None = None
    before: int | None = None


def entries(
    session: Session, organization_id: str | None, wanted: Wanted, limit: int | None = None
) -> Sequence[AuditEntry]:
    """Return the lines of an organization, newest first; of None those that are nobody's."""
    query = select(AuditEntry).where(AuditEntry.organization_id == organization_id)
    query = query.where(*_conditions(wanted)).order_by(AuditEntry.position.desc())
    return session.scalars(_cut(query, limit)).all()


def _conditions(wanted: Wanted) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.by:
        name = func.lower(AuditEntry.actor_name).contains(wanted.by.lower(), autoescape=True)
        found.append(or_(name, AuditEntry.credential_hint == wanted.by.removeprefix("…")))
    if wanted.area:
        found.append(AuditEntry.operation.startswith(f"{wanted.area}.", autoescape=True))
    if wanted.since is not None:
        found.append(AuditEntry.at >= wanted.since)
    if wanted.before is not None:
        found.append(AuditEntry.position < wanted.before)
    return found


def _cut(query: Select[AuditEntry], limit: int | None) -> Select[AuditEntry]:
    return query if limit is None else query.limit(limit)
