"""The operation for the console's page of a device.

The reply contains the reply of `deviceDetail`, a summary line for each report, the timeline, the
changes between the newest reports and the previous ones, and incidents that the device shared with
other devices.
"""

from sqlalchemy import select

from agent.wire.operator_operations import DeviceDetailRequest
from controlplane.devices.incidents.listing import shared_incidents_of
from controlplane.devices.overview.listing import LINE, line_of, names_of_requesters, rows_of
from controlplane.devices.overview.records import DeviceReply
from controlplane.devices.overview.report_changes import ReportChangeCache
from controlplane.devices.reading import device_detail
from controlplane.devices.timeline.history import timeline_of
from controlplane.operation.context import RequestContext
from controlplane.storage.tables import Report


def device(
    changes: ReportChangeCache, context: RequestContext, body: DeviceDetailRequest
) -> DeviceReply:
    detail = device_detail(context, body)
    device = context.device(body.instance_id)
    (row,) = rows_of(context.session, [device], context.now, context.settings)
    report_ids = [each.report_id for each in detail.reports]
    request_ids = [each.id for each in detail.requests]
    # Requests and reports are paged separately. The report of a request on this page may be on a
    # different page of reports, so it is loaded as well.
    query = (
        select(Report)
        .where(Report.id.in_(report_ids) | Report.request_id.in_(request_ids))
        .options(LINE)
    )
    return DeviceReply(
        detail=detail,
        row=row,
        lines=tuple(line_of(report) for report in context.session.scalars(query)),
        requesters=names_of_requesters(
            context.session, {each.requested_by_id for each in detail.requests}
        ),
        changes=changes.of_device(context, device) if body.cursor is None else (),
        incidents=shared_incidents_of(context, device) if body.cursor is None else (),
        timeline=timeline_of(context.session, device, context.now),
        can_write=context.caller.can_write,
    )
