"""Read devices, their requests and their reports."""

from typing import TypeVar

from sqlalchemy import select

from agent.wire.operator_operations import (
    DeviceDetailReply,
    DeviceDetailRequest,
    ListDevicesReply,
    ListDevicesRequest,
    ReportDetail,
    ReportDetailRequest,
)
from controlplane.devices.records import (
    device_records,
    report_detail,
    report_summary,
    request_record,
)
from controlplane.devices.requests import lifecycle
from controlplane.operation.context import RequestContext
from controlplane.operation.cursors import POSITION_MAX, SortKey
from controlplane.operation.errors import not_found
from controlplane.storage.tables import Device, Report, Request

Row = TypeVar("Row", Request, Report)


def list_devices(context: RequestContext, body: ListDevicesRequest) -> ListDevicesReply:
    """Return a page of devices in the order of their first enrollment."""
    listing = (context.organization_id, "devices")
    after = 0 if body.cursor is None else context.cursors.read(listing, body.cursor).position
    size = context.page_size
    query = (
        select(Device)
        .where(Device.organization_id == context.caller.organization_id, Device.position > after)
        .order_by(Device.position)
        .limit(size + 1)
    )
    if context.caller.locations:
        query = query.where(Device.location_id.in_(context.caller.locations))
    rows = context.session.scalars(query).all()
    page = rows[:size]
    next_cursor = None
    if len(rows) > size:
        next_cursor = context.cursors.write(listing, SortKey(0, page[-1].position))
    return ListDevicesReply(
        devices=device_records(context.session, page, context.now, context.settings),
        next_cursor=next_cursor,
    )


def device_detail(context: RequestContext, body: DeviceDetailRequest) -> DeviceDetailReply:
    """Return the device with a page of its requests and a page of its reports, newest first.

    One cursor holds both positions. A list without further rows is empty on later pages.
    """
    device = context.device(body.instance_id)
    listing = (context.organization_id, "history", str(device.instance_id))
    first_request = first_report = POSITION_MAX
    if body.cursor is not None:
        first_request, first_report = context.cursors.read(listing, body.cursor)
    requests, next_request = _page(context, Request, device, first_request)
    reports, next_report = _page(context, Report, device, first_report)
    _show_due_as_expired(context, requests)
    following = SortKey(next_request, next_report)
    (record,) = device_records(context.session, (device,), context.now, context.settings)
    return DeviceDetailReply(
        device=record,
        requests=tuple(request_record(row) for row in requests),
        reports=tuple(report_summary(row) for row in reports),
        next_cursor=context.cursors.write(listing, following) if any(following) else None,
    )


def read_report(context: RequestContext, body: ReportDetailRequest) -> ReportDetail:
    """Return a report with its content."""
    report = context.session.scalars(select(Report).where(Report.id == body.report_id)).first()
    if report is None:
        raise not_found("report")
    context.visit(report.organization_id, report.location_id, "report")
    return report_detail(report)


def _page(
    context: RequestContext, table: type[Row], device: Device, before: int
) -> tuple[list[Row], int]:
    """Return the device's newest rows before a position, and the position of the next page.

    Position 0 means that there is no further page.
    """
    size = context.page_size
    query = (
        select(table)
        .where(
            table.instance_id == device.instance_id,
            table.organization_id == device.organization_id,
            table.position < before,
        )
        .order_by(table.position.desc())
        .limit(size + 1)
    )
    if context.caller.locations:
        query = query.where(table.location_id.in_(context.caller.locations))
    rows = list(context.session.scalars(query))
    page = rows[:size]
    return page, page[-1].position if len(rows) > size else 0


def _show_due_as_expired(context: RequestContext, requests: list[Request]) -> None:
    """Show due requests as expired without storing it: a read operation writes nothing."""
    for row in requests:
        if lifecycle.is_due(row.status, row.expires_at, context.now):
            context.session.expunge(row)
            row.status = lifecycle.move(row.status, "expire")
            row.finished_at = row.expires_at
