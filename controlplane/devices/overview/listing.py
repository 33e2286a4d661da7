"""The console's list of devices, and its page of a device. Devices with problems come first.

The reply for the page of a device contains the reply of `deviceDetail`, a summary line for each
report, the timeline, the changes between the newest reports and the previous ones, and incidents
that the device shared with other devices.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, func, select, tuple_, union_all
from sqlalchemy.orm import Session, load_only

from agent.wire.operator_operations import DeviceDetailRequest
from controlplane.devices.incidents.listing import shared_incidents_of
from controlplane.devices.locations.locations import schedules
from controlplane.devices.locations.status import DeviceStatus, status_of
from controlplane.devices.overview import records
from controlplane.devices.overview.report_changes import ReportChangeCache
from controlplane.devices.overview.searching import matches_device_or_reports, words_of
from controlplane.devices.priority import ONLINE, Priority, has_health, health_of
from controlplane.devices.reading import device_detail
from controlplane.devices.records import device_records
from controlplane.devices.requests.requests import is_open
from controlplane.devices.timeline.history import timeline_of
from controlplane.operation.context import RequestContext
from controlplane.operation.cursors import SortKey
from controlplane.operation.records import record_of
from controlplane.settings import Settings
from controlplane.storage.account_tables import User
from controlplane.storage.monitoring_tables import PendingRequest
from controlplane.storage.tables import ApiKey, Device, Report, Request

LINE_COLUMNS = (
    Report.id,
    Report.instance_id,
    Report.request_id,
    Report.location_id,
    Report.kind,
    Report.outcome,
    Report.created_at,
    Report.severity,
    Report.headline,
)
LINE = load_only(*LINE_COLUMNS, raiseload=True)
"""Option of a query that loads only these columns of a report, not its content."""


def overview(context: RequestContext, body: records.OverviewRequest) -> records.OverviewReply:
    """Return a page of devices. Devices with problems come first."""
    size = body.size or records.PAGE_DEFAULT
    listing = (context.organization_id, "overview")
    matching = (
        context.visible(Device),
        *filter_conditions(body, context.now, context.organization_id),
    )
    query = (
        select(Device.position)
        .where(*matching)
        .order_by(Device.priority, Device.position)
        .limit(size + 1)
    )
    if body.cursor is not None:
        after = context.cursors.read(listing, body.cursor)
        query = query.where(tuple_(Device.priority, Device.position) > tuple_(*after))
    positions = context.session.scalars(query).all()
    page = _read_devices(context.session, positions[:size])
    last = page[-1] if len(positions) > size and page else None
    total = requestable = None
    if body.count and (last is not None or body.cursor is not None):
        total, requestable = _count(context.session, matching)
    elif body.count:  # this page has all matching devices
        total = len(page)
        requestable = sum(each.priority != Priority.REVOKED for each in page)
    return records.OverviewReply(
        devices=rows_of(context.session, page, context.now, context.settings),
        next_cursor=None
        if last is None
        else context.cursors.write(listing, SortKey(last.priority, last.position)),
        can_write=context.caller.can_write,
        total=total,
        requestable=requestable,
    )


def healths(context: RequestContext, body: records.HealthsRequest) -> records.HealthsReply:
    """Return a page of devices with their health only, in the order of their first enrollment."""
    size = body.size or records.HEALTHS_PAGE_MAX
    listing = (context.organization_id, "healths")
    words = words_of(body.search)
    query = (
        select(Device.position, Device.instance_id, Device.priority, Device.severity)
        .where(
            context.visible(Device),
            *(matches_device_or_reports(word, context.organization_id) for word in words),
        )
        .order_by(Device.position)
        .limit(size + 1)
    )
    if body.cursor is not None:
        after, _ = context.cursors.read(listing, body.cursor)
        query = query.where(Device.position > after)
    rows = context.session.execute(query).all()
    page = rows[:size]
    return records.HealthsReply(
        devices=tuple(
            records.DeviceHealth(
                instance_id=each.instance_id, health=health_of(each.priority, each.severity)
            )
            for each in page
        ),
        next_cursor=context.cursors.write(listing, SortKey(page[-1].position, 0))
        if len(rows) > size
        else None,
    )


def device(
    changes: ReportChangeCache, context: RequestContext, body: DeviceDetailRequest
) -> records.DeviceReply:
    """Return the content of the page of a device."""
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
    return records.DeviceReply(
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


def _count(session: Session, matching: Collection[ColumnElement[bool]]) -> tuple[int, int]:
    """Return the number of matching devices, and of those that are not revoked."""
    not_revoked = func.count().filter(Device.priority != Priority.REVOKED)
    total, requestable = session.execute(select(func.count(), not_revoked).where(*matching)).one()
    return total, requestable


def filter_conditions(
    filters: records.Filters, now: datetime, organization_id: str
) -> list[ColumnElement[bool]]:
    """Return the conditions that devices must meet to match all filters."""
    result = [state_is(filters.state, now)] if filters.state else []
    if filters.location is not None:
        result.append(Device.location_id == filters.location)
    if filters.platform is not None:
        result.append(Device.platform == filters.platform)
    if filters.version is not None:
        result.append(Device.app_version == (filters.version or None))
    return [
        *result,
        *(matches_device_or_reports(word, organization_id) for word in words_of(filters.search)),
    ]


def state_is(state: records.State, now: datetime) -> ColumnElement[bool]:
    """Return the SQL condition for devices with this health, or in a state such as ``busy``."""
    if state == "online":
        return Device.priority.in_(ONLINE)
    if state == "closed":
        return Device.priority == Priority.CLOSED
    if state == "maintenance":
        return Device.priority == Priority.MAINTENANCE
    if state == "busy":
        return Device.binding_id.in_(select(Request.binding_id).where(is_open(now)))
    return has_health(state)


def rows_of(
    session: Session, devices: Sequence[Device], now: datetime, settings: Settings
) -> tuple[records.Row, ...]:
    """Return the rows of these devices, in the same order."""
    details = device_records(session, devices, now, settings)
    lines = _newest_lines(session, devices)
    requests = _open_requests(session, devices, now)
    pending = _pending_requests(session, devices)
    by_location = schedules(session, now, {(d.organization_id, d.location_id) for d in devices})
    statuses = [
        status_of(
            by_location[each.organization_id, each.location_id],
            each.instance_id,
            each.last_seen_at,
            now,
            settings.offline_window,
        )
        for each in devices
    ]
    return tuple(
        records.Row(
            device=detail,
            health=health_of(device.priority, device.severity),
            state=_state_of(device, status),
            maintenance_until=status.until,
            severity=device.severity,
            reports=tuple(lines[each] for each in device.newest_reports if each in lines),
            requests=tuple(requests[device.binding_id]),
            pending_requests=tuple(pending[device.organization_id, device.instance_id]),
        )
        for device, detail, status in zip(devices, details, statuses, strict=True)
    )


def rows_at(
    session: Session, positions: Collection[int], now: datetime, settings: Settings
) -> dict[int, records.Row]:
    """Return the rows of the devices with these row keys (``Device.position``)."""
    devices = _read_devices(session, positions)
    rows = rows_of(session, devices, now, settings)
    return {device.position: row for device, row in zip(devices, rows, strict=True)}


def line_of(report: Report) -> records.ReportLine:
    return record_of(records.ReportLine, report, report_id=report.id)


def names_of_requesters(session: Session, ids: Collection[str]) -> dict[str, str]:
    """Return the names of the users and API keys with these ids (``Request.requested_by_id``)."""
    uuids = []
    for each in ids:
        try:
            uuids.append(UUID(each))
        except ValueError:
            continue
    if not uuids:
        return {}
    query = union_all(
        select(ApiKey.id, ApiKey.name).where(ApiKey.id.in_(uuids)),
        select(User.id, User.name).where(User.id.in_(uuids)),
    )
    return {str(row.id): row.name for row in session.execute(query)}


def _read_devices(session: Session, positions: Collection[int]) -> list[Device]:
    query = select(Device).where(Device.position.in_(positions))
    return list(session.scalars(query.order_by(Device.priority, Device.position)))


def _state_of(device: Device, status: DeviceStatus) -> records.RowState:
    if device.revoked_at is not None:
        return "revoked"
    if status.state == "offline" and device.last_seen_at <= device.enrolled_at:
        return "never-connected"
    return status.state


def _newest_lines(session: Session, devices: Sequence[Device]) -> dict[int, records.ReportLine]:
    """Return the newest reports of each device, by the row key of the report (``Report.position``).

    Reports from an earlier location of the device are left out.
    """
    locations = {
        position: device.location_id for device in devices for position in device.newest_reports
    }
    query = select(Report).where(Report.position.in_(locations)).options(LINE)
    return {
        report.position: line_of(report)
        for report in session.scalars(query)
        if report.location_id == locations[report.position]
    }


def _open_requests(
    session: Session, devices: Sequence[Device], now: datetime
) -> dict[UUID, list[records.OpenRequest]]:
    query = (
        select(Request)
        .where(Request.binding_id.in_([device.binding_id for device in devices]), is_open(now))
        .order_by(Request.position)
    )
    requests = session.scalars(query).all()
    requesters = names_of_requesters(session, {each.requested_by_id for each in requests})
    by_binding: dict[UUID, list[records.OpenRequest]] = defaultdict(list)
    for each in requests:
        by_binding[each.binding_id].append(
            record_of(records.OpenRequest, each, requested_by=requesters.get(each.requested_by_id))
        )
    return by_binding


def _pending_requests(
    session: Session, devices: Sequence[Device]
) -> dict[tuple[str, UUID], list[records.PendingRequestRecord]]:
    """Return the waiting pending requests, by organization and instance.

    A dispatched pending request is not included, because its request is in `_open_requests`.
    """
    query = select(PendingRequest).where(
        PendingRequest.instance_id.in_([each.instance_id for each in devices]),
        PendingRequest.state == "waiting",
    )
    rows = session.scalars(query.order_by(PendingRequest.position)).all()
    requesters = names_of_requesters(session, {str(row.requester_id) for row in rows})
    by_device: dict[tuple[str, UUID], list[records.PendingRequestRecord]] = defaultdict(list)
    for row in rows:
        name = requesters.get(str(row.requester_id))
        record = record_of(records.PendingRequestRecord, row, requested_by=name)
        by_device[row.organization_id, row.instance_id].append(record)
    return by_device
