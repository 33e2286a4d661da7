"""The audit log in the console, for signed-in owners with access to all locations."""

from typing import Final

from controlplane.accounts.members.rules import require_owner
from controlplane.audit.messages import PAGE_DEFAULT, AuditRecord, AuditReply, AuditRequest
from controlplane.audit.reading import AuditFilters, entries
from controlplane.operation.context import RequestContext
from controlplane.operation.cursors import SortKey
from controlplane.operation.operation import Procedure, procedure
from controlplane.operation.records import record_of

PATH: Final = "/console/api/audit"


def audit_operations() -> tuple[Procedure, ...]:
    return (procedure(PATH, read_audit_log, requires_session=True),)


def read_audit_log(context: RequestContext, body: AuditRequest) -> AuditReply:
    """Return a page of the organization's audit log, newest first."""
    require_owner(context)
    size = body.size or PAGE_DEFAULT
    listing = (context.organization_id, "audit")
    before = None if body.cursor is None else context.cursors.read(listing, body.cursor).position
    filters = AuditFilters(by=body.by, area=body.area, before=before)
    # The additional row shows whether there is a next page.
    rows = entries(context.session, context.caller.organization_id, filters, size + 1)
    page = rows[:size]
    next_cursor = None
    if len(rows) > size:
        next_cursor = context.cursors.write(listing, SortKey(0, page[-1].position))
    return AuditReply(
        entries=tuple(record_of(AuditRecord, row) for row in page),
        next_cursor=next_cursor,
    )
