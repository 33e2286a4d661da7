"""The operator asks for reports, reads them, and lists or revokes devices."""

import uuid
from typing import TypeVar

from sqlalchemy import select

from agent.wire.operator_operations import (
    CreateRequestReply,
    CreateRequestRequest,
    DeviceDetailReply,
    DeviceDetailRequest,
    ListDevicesReply,
    ListDevicesRequest,
    ReportDetail,
    ReportDetailRequest,
    RevokeReply,
    RevokeRequest,
)
from controlplane.operation.audit_entries import Event, device_subject
from controlplane.operation.errors import not_found
from controlplane.operation.context import RequestContext
from controlplane.operation.cursors import POSITION_MAX, read_cursor, write_cursor
from controlplane.devices.priority import Priority
from controlplane.devices.liveness import note_heard
from controlplane.devices.records import (
    PROTOCOL_VERSION,
    device_records,
    report_detail,
    report_summary,
    request_record,
)
from controlplane.devices.requests import lifecycle
from controlplane.devices.requests.asking import ask
from controlplane.devices.requests.expiry import expire_binding
from controlplane.storage.tables import Binding, Device, Report, Request

Row = TypeVar("Row", Request, Report)


def create_request(context: RequestContext, body: CreateRequestRequest) -> CreateRequestReply:
    """Ask a device for a report. It is queued until the device says that it has received it."""
    device = context.device(body.instance_id, lock=True)
    request = ask(
        context.session,
        device,
        body.kind,
        request_id=uuid.uuid4(),
        asked_by=context.caller.user_id,
        now=context.now,
        settings=context.settings,
    )
    context.note(Event("request.create", device_subject(device), body.kind))
    context.woken.add(device.key_id)
    return CreateRequestReply(
        version=PROTOCOL_VERSION,
        request_id=request.id,
        binding_id=request.binding_id,
        kind=request.kind,
        expires_at=request.expires_at,
        status="queued",
    )


def list_devices(context: RequestContext, body: ListDevicesRequest) -> ListDevicesReply:
    """Return a page of devices, in the order in which they first enrolled."""
    after = 0 if body.cursor is None else read_cursor("devices", body.cursor)[0]
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
    page, is_more = rows[:size], len(rows) > size
    return ListDevicesReply(
        devices=device_records(context.session, page, context.now, context.settings),
        next_cursor=write_cursor("devices", page[-1].position) if is_more else None,
    )


def device_detail(context: RequestContext, body: DeviceDetailRequest) -> DeviceDetailReply:
    """Return the device with a page of its requests and one of its reports, newest first.

    One cursor carries both positions; a list that has ended stays empty on later pages.
    """
    device = context.device(body.instance_id)
    before = (
        (POSITION_MAX, POSITION_MAX) if body.cursor is None else read_cursor("history", body.cursor)
    )
    requests, next_request = _page(context, Request, device, before[0])
    reports, next_report = _page(context, Report, device, before[1])
    _show_due_as_expired(context, requests)
    is_more = next_request > 0 or next_report > 0
    (record,) = device_records(context.session, (device,), context.now, context.settings)
    return DeviceDetailReply(
        device=record,
        requests=tuple(request_record(row) for row in requests),
        reports=tuple(report_summary(row) for row in reports),
        next_cursor=write_cursor("history", next_request, next_report) if is_more else None,
    )


def read_report(context: RequestContext, body: ReportDetailRequest) -> ReportDetail:
    """Return a report with its content."""
    report = context.session.scalars(select(Report).where(Report.id == body.report_id)).first()
    if report is None:
        raise not_found("report")
    context.visit(report.organization_id, report.location_id, "report")
    return report_detail(report)


def revoke(context: RequestContext, body: RevokeRequest) -> RevokeReply:
    """End the device's binding and what is open for it. Doing it again changes nothing."""
    device = context.device(body.instance_id, lock=True)
    if device.revoked_at is None:
        device.revoked_at = context.now
        device.priority = Priority.REVOKED
        context.is_reordered = True
        binding = context.session.get(Binding, device.binding_id)
        if binding is not None:
            binding.ended_at = context.now
        expire_binding(context.session, context.now, device.binding_id)
        note_heard(context.session, (device.position,), context.now)
        context.note(Event("device.revoke", device_subject(device)))
        context.woken.add(device.key_id)
    return RevokeReply(revoked=True)


def _page(
    context: RequestContext, table: type[Row], device: Device, before: int
) -> tuple[list[Row], int]:
    """Return the device's newest rows from before a position, and where the next page begins.

    0 stands for no further page.
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
    """A reading operation writes nothing: what is due is shown as expired, the sweep does it."""
    for row in requests:
        if lifecycle.is_due(row.status, row.expires_at, context.now):
            context.session.expunge(row)
            row.status = lifecycle.move(row.status, "expire")
            row.finished_at = row.expires_at
