"""The audit log in the console, for signed-in owners with access to all locations."""

from typing import Final

from controlplane.accounts.members.rules import require_owner
from controlplane.audit.messages import PAGE_DEFAULT, AuditRecord, AuditReply, AuditRequest
from controlplane.audit.reading import AuditFilters, query_of
from controlplane.operation.context import RequestContext
from controlplane.operation.operation import Procedure, procedure
from controlplane.operation.paging import Order, page
from controlplane.operation.records import record_of
from controlplane.storage.audit_tables import AuditEntry

PATH: Final = "/console/api/audit"


def audit_operations() -> tuple[Procedure, ...]:
    return (procedure(PATH, read_audit_log, requires_session=True),)


def read_audit_log(context: RequestContext, body: AuditRequest) -> AuditReply:
    """Return a page of the organization's audit log, newest first."""
    require_owner(context)
    rows, next_cursor = page(
        context,
        query_of(context.organization_id, AuditFilters(by=body.by, area=body.area)),
        Order(AuditEntry.position, is_descending=True),
        (context.organization_id, "audit"),
        cursor=body.cursor,
        limit=body.size or PAGE_DEFAULT,
    )
    return AuditReply(
        entries=tuple(record_of(AuditRecord, row) for row in rows),
        next_cursor=next_cursor,
    )
