"""The printers of all devices. Broken printers come first."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, func, or_, select, tuple_

from controlplane.devices.overview import records
from controlplane.devices.overview.report_contents import PrinterState
from controlplane.devices.overview.searching import matches_device, words_of
from controlplane.devices.priority import health_of
from controlplane.devices.records import device_records
from controlplane.operation.context import RequestContext
from controlplane.operation.cursors import SortKey
from controlplane.operation.records import record_of
from controlplane.storage.report_tables import DevicePrinter
from controlplane.storage.tables import Device


def printers(context: RequestContext, body: records.PrintersRequest) -> records.PrintersReply:
    """Return a page of printers. Broken printers come first."""
    size = body.size or records.PAGE_DEFAULT
    listing = (context.organization_id, "printers")
    matching = _conditions(context, body)
    query = (
        select(DevicePrinter)
        .where(*matching)
        .order_by(DevicePrinter.state, DevicePrinter.position)
        .limit(size + 1)
    )
    if body.state is not None:
        query = query.where(DevicePrinter.state == PrinterState[body.state.upper()])
    if body.cursor is not None:
        after = context.cursors.read(listing, body.cursor)
        query = query.where(tuple_(DevicePrinter.state, DevicePrinter.position) > tuple_(*after))
    rows = context.session.scalars(query).all()
    page = rows[:size]
    return records.PrintersReply(
        printers=_records(context, page),
        states={} if body.cursor is not None else _counts(context, matching),
        next_cursor=context.cursors.write(listing, SortKey(page[-1].state, page[-1].position))
        if len(rows) > size
        else None,
    )


def _conditions(
    context: RequestContext, body: records.PrintersRequest
) -> list[ColumnElement[bool]]:
    conditions = [DevicePrinter.organization_id == context.organization_id]
    devices = select(Device.position).where(context.visible(Device))
    if body.location is not None:
        devices = devices.where(Device.location_id == body.location)
    # The condition for the devices is added only if it is needed. Without this condition, the
    # database lists and counts the printers from their index alone.
    if body.location is not None or context.caller.locations:
        conditions.append(DevicePrinter.device.in_(devices))
    text = (
        DevicePrinter.name.concat(" ")
        .concat(func.coalesce(DevicePrinter.address, ""))
        .concat(" ")
        .concat(DevicePrinter.detail)
    )
    for word in words_of(body.search):
        matches_printer = text.icontains(word, autoescape=True)
        matching_devices = devices.where(matches_device(word, context.organization_id))
        conditions.append(or_(matches_printer, DevicePrinter.device.in_(matching_devices)))
    return conditions


def _counts(context: RequestContext, matching: Sequence[ColumnElement[bool]]) -> dict[str, int]:
    query = select(DevicePrinter.state, func.count()).where(*matching)
    rows = context.session.execute(query.group_by(DevicePrinter.state))
    counts = {row[0]: row[1] for row in rows}
    return {state.name.lower(): counts.get(state, 0) for state in PrinterState}


def _records(
    context: RequestContext, page: Sequence[DevicePrinter]
) -> tuple[records.PrinterRecord, ...]:
    query = select(Device).where(Device.position.in_({printer.device for printer in page}))
    devices = {device.position: device for device in context.session.scalars(query)}
    page_devices = [devices[printer.device] for printer in page]
    page_records = device_records(context.session, page_devices, context.now, context.settings)
    return tuple(
        record_of(
            records.PrinterRecord,
            printer,
            id=printer.printer_id,
            state=PrinterState(printer.state).name.lower(),
            device=record,
            health=health_of(device.priority, device.severity),
        )
        for printer, device, record in zip(page, page_devices, page_records, strict=True)
    )
