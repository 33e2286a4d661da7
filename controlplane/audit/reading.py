"""Selects entries of the audit log."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Select, func, or_, select

from controlplane.storage.audit_tables import AuditEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilters:
    """Filters of entries. A filter that is None accepts all entries.

    Attributes:
        by: part of the actor's name, or the end of the API key that the actor used.
        area: first part of the operation's name.
    """

    by: str | None = None
    area: str | None = None
    since: datetime | None = None


def query_of(organization_id: str | None, filters: AuditFilters) -> Select[AuditEntry]:
    """Return the query for the entries of an organization that match the filters.

    None selects entries without an organization.
    """
    query = select(AuditEntry).where(AuditEntry.organization_id == organization_id)
    return query.where(*_conditions(filters))


def _conditions(filters: AuditFilters) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if filters.by:
        name = func.lower(AuditEntry.actor_name).contains(filters.by.lower(), autoescape=True)
        conditions.append(or_(name, AuditEntry.credential_hint == filters.by.removeprefix("…")))
    if filters.area:
        conditions.append(AuditEntry.operation.startswith(f"{filters.area}.", autoescape=True))
    if filters.since is not None:
        conditions.append(AuditEntry.at >= filters.since)
    return conditions
