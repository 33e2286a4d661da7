"""Reads the audit log, newest entries first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from controlplane.storage.audit_tables import AuditEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilters:
    """Filters of entries. A filter that is None accepts all entries.

    Attributes:
        by: part of the actor's name, or the end of the API key that the actor used.
        area: first part of the operation's name.
        before: position of the last entry of the previous page.
    """

    by: str | None = None
    area: str | None = None
    since: datetime | None = None
    before: int | None = None


def entries(
    session: Session, organization_id: str | None, filters: AuditFilters, limit: int | None = None
) -> Sequence[AuditEntry]:
    """Return the entries of an organization. None selects entries without an organization.

    Without ``limit``, all entries that match the filters are returned.
    """
    query = select(AuditEntry).where(AuditEntry.organization_id == organization_id)
    query = query.where(*_conditions(filters)).order_by(AuditEntry.position.desc())
    return session.scalars(query.limit(limit)).all()


def _conditions(filters: AuditFilters) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if filters.by:
        name = func.lower(AuditEntry.actor_name).contains(filters.by.lower(), autoescape=True)
        conditions.append(or_(name, AuditEntry.credential_hint == filters.by.removeprefix("…")))
    if filters.area:
        conditions.append(AuditEntry.operation.startswith(f"{filters.area}.", autoescape=True))
    if filters.since is not None:
        conditions.append(AuditEntry.at >= filters.since)
    if filters.before is not None:
        conditions.append(AuditEntry.position < filters.before)
    return conditions
