"""Read devices, their requests and their reports."""

from collections.abc import Sequence
from typing import TypeVar

from sqlalchemy import select

from agent.wire.operator_operations import (
    DeviceDetailReply,
    DeviceDetailRequest,
    ListDevicesReply,
    ListDevicesRequest,
    RemoteRequest,
    ReportDetail,
    ReportDetailRequest,
)
from controlplane.devices.records import device_records, payload_of, report_summary
from controlplane.devices.requests import lifecycle
from controlplane.operation.context import RequestContext
from controlplane.operation.cursors import POSITION_MAX, SortKey
from controlplane.operation.errors import not_found
from controlplane.operation.paging import Order, page
from controlplane.operation.records import record_of
from controlplane.storage.tables import Device, Report, Request

Row = TypeVar("Row", Request, Report)


def list_devices(context: RequestContext, body: ListDevicesRequest) -> ListDevicesReply:
    """Return a page of devices in the order of their first enrollment."""
    query = select(Device).where(context.visible(Device))
    listing = (context.organization_id, "devices")
    order, size = Order(Device.position), context.page_size
    rows, next_cursor = page(context, query, order, listing, cursor=body.cursor, limit=size)
    return ListDevicesReply(
        devices=device_records(context.session, rows, context.now, context.settings),
        next_cursor=next_cursor,
    )


def device_detail(context: RequestContext, body: DeviceDetailRequest) -> DeviceDetailReply:
    """Return the device with a page of its requests and a page of its reports, newest first.

    One cursor covers both lists. A list that has no further rows is empty on later pages.
    """
    device = context.device(body.instance_id)
    listing = (context.organization_id, "history", str(device.instance_id))
    first_request = first_report = POSITION_MAX
    if body.cursor is not None:
        first_request, first_report = context.cursors.read(listing, body.cursor)
    requests, next_request = _page(context, Request, device, first_request)
    reports, next_report = _page(context, Report, device, first_report)
    show_due_as_expired(context, requests)
    following = SortKey(next_request, next_report)
    (record,) = device_records(context.session, (device,), context.now, context.settings)
    return DeviceDetailReply(
        device=record,
        requests=tuple(record_of(RemoteRequest, row) for row in requests),
        reports=tuple(report_summary(row) for row in reports),
        next_cursor=context.cursors.write(listing, following) if any(following) else None,
    )


def read_report(context: RequestContext, body: ReportDetailRequest) -> ReportDetail:
    """Return a report with its content."""
    report = context.session.scalars(select(Report).where(Report.id == body.report_id)).first()
    if report is None:
        raise not_found("report")
    context.require_access(report.organization_id, report.location_id, "report")
    return record_of(ReportDetail, report, payload=payload_of(report))


def _page(
    context: RequestContext, table: type[Row], device: Device, before: int
) -> tuple[list[Row], int]:
    """Return the device's newest rows with a row key below ``before``, newest first.

    Also return the ``before`` of the next page, or 0 if there is no further page.
    """
    size = context.page_size
    query = (
        select(table)
        .where(
            context.visible(table),
            table.instance_id == device.instance_id,
            table.position < before,
        )
        .order_by(table.position.desc())
        .limit(size + 1)
    )
    rows = list(context.session.scalars(query))
    return rows[:size], rows[size - 1].position if len(rows) > size else 0


def show_due_as_expired(context: RequestContext, requests: Sequence[Request]) -> None:
    """Mark open requests past their expiry as expired.

    Only the loaded objects are changed, because a read operation must not write.
    """
    for row in requests:
        if lifecycle.is_due(row.status, row.expires_at, context.now):
            context.session.expunge(row)
            row.status = lifecycle.move(row.status, "expire")
            row.finished_at = row.expires_at
