"""The audit log for the console: for owners of the whole organization, signed in."""

from typing import Final

from controlplane.accounts.members.rules import require_owner
from controlplane.audit.messages import PAGE_DEFAULT, AuditRecord, AuditReply, AuditRequest
from controlplane.audit.reading import Wanted, entries
from controlplane.operation.context import RequestContext
from controlplane.operation.cursors import Place
from controlplane.operation.operation import Procedure, procedure
from controlplane.storage.audit_tables import AuditEntry

PATH: Final = "/console/api/audit"


def audit_operations() -> tuple[Procedure, ...]:
    return (procedure(PATH, audit, of_person=True),)


def audit(context: RequestContext, body: AuditRequest) -> AuditReply:
    """Return a page of what was asked and changed in the organization, newest first."""
    require_owner(context)
    size = body.size or PAGE_DEFAULT
    listing = (context.organization_id, "audit")
    before = None if body.cursor is None else context.cursors.read(listing, body.cursor).position
    wanted = Wanted(by=body.by, area=body.area, before=before)
    rows = entries(context.session, context.caller.organization_id, wanted, size + 1)
    page = rows[:size]
    next_cursor = None
    if len(rows) > size:
        next_cursor = context.cursors.write(listing, Place(0, page[-1].position))
    return AuditReply(
        entries=tuple(record(row) for row in page),
        next_cursor=next_cursor,
    )


def record(row: AuditEntry) -> AuditRecord:
    return AuditRecord(
        at=row.at,
        actor_kind=row.actor_kind,
        actor_id=row.actor_id,
        actor_name=row.actor_name,
        credential_kind=row.credential_kind,
        credential_id=row.credential_id,
        credential_hint=row.credential_hint,
        operation=row.operation,
        subject_kind=row.subject_kind,
        subject_id=row.subject_id,
        subject_name=row.subject_name,
        detail=row.detail,
        outcome=row.outcome,
        address=row.address,
    )
