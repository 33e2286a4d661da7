"""Selects entries of the audit log."""

from datetime import datetime

from sqlalchemy import Select, func, or_, select

from controlplane.storage.audit_tables import AuditEntry


def select_entries(
    organization_id: str | None,
    *,
    by: str | None = None,
    area: str | None = None,
    since: datetime | None = None,
) -> Select[AuditEntry]:
    """Select the entries of an organization. None selects entries without an organization.

    A filter that is None accepts all entries.

    Args:
        by: part of the actor's name, or the end of the API key that the actor used.
        area: first part of the operation's name.
    """
    query = select(AuditEntry).where(AuditEntry.organization_id == organization_id)
    if by:
        name = func.lower(AuditEntry.actor_name).contains(by.lower(), autoescape=True)
        query = query.where(or_(name, AuditEntry.credential_hint == by.removeprefix("…")))
    if area:
        query = query.where(AuditEntry.operation.startswith(f"{area}.", autoescape=True))
    if since is not None:
        query = query.where(AuditEntry.at >= since)
    return query
