"""A page of devices, what is broken first, with all that a console shows of each."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import ColumnElement, and_, func, or_, select, true, tuple_, union_all
from sqlalchemy.orm import Session, load_only

from controlplane.devices.locations.locations import Places, places
from controlplane.devices.locations.status import Standing, standing
from controlplane.devices.overview.pending import pending_requests_of
from controlplane.devices.overview.records import (
    PAGE_DEFAULT,
    Filters,
    OpenRequest,
    OverviewReply,
    OverviewRequest,
    ReportLine,
    Row,
    RowState,
)
from controlplane.devices.priority import HEARD, SILENT, Priority
from controlplane.devices.records import device_records
from controlplane.devices.requests import lifecycle
from controlplane.operation.context import RequestContext
from controlplane.operation.cursors import Place
from controlplane.settings import Settings
from controlplane.storage.account_tables import User
from controlplane.storage.tables import ApiKey, Device, Report, Request

WORDS_MAX: Final = 8
ID_STARTS_AT: Final = 6
"""Fewer characters of an id are no search for it: they are in half of all names."""
LINE = load_only(
    Report.id,
    Report.instance_id,
    Report.request_id,
    Report.location_id,
    Report.kind,
    Report.outcome,
    Report.created_at,
    Report.tone,
    Report.headline,
    raiseload=True,
)
"""All of a report but its content."""


def overview(context: RequestContext, body: OverviewRequest) -> OverviewReply:
    """Return a page of devices, what needs a look first."""
    size = body.size or PAGE_DEFAULT
    listing = (context.organization_id, "overview")
    query = (
        select(Device.position)
        .where(visible(context), *conditions(body, context.now))
        .order_by(Device.priority, Device.position)
        .limit(size + 1)
    )
    if body.cursor is not None:
        after = context.cursors.read(listing, body.cursor)
        query = query.where(tuple_(Device.priority, Device.position) > tuple_(*after))
    positions = context.session.scalars(query).all()
    page = _devices(context.session, positions[:size])
    last = page[-1] if len(positions) > size and page else None
    return OverviewReply(
        devices=rows(context.session, page, context.now, context.settings),
        next_cursor=None
        if last is None
        else context.cursors.write(listing, Place(last.priority, last.position)),
        can_write=context.caller.can_write,
    )


def visible(context: RequestContext) -> ColumnElement[bool]:
    """The devices that the caller may see."""
    own = Device.organization_id == context.caller.organization_id
    if not context.caller.locations:
        return own
    return and_(own, Device.location_id.in_(context.caller.locations))


def conditions(filters: Filters, now: datetime) -> list[ColumnElement[bool]]:
    found = [state_is(filters.state, now)] if filters.state else []
    if filters.location is not None:
        found.append(Device.location_id == filters.location)
    if filters.platform is not None:
        found.append(Device.platform == filters.platform)
    if filters.version is not None:
        found.append(
            Device.app_version == filters.version
            if filters.version
            else Device.app_version.is_(None)
        )
    words = (filters.search or "").split()[:WORDS_MAX]
    return [*found, *(_holds(word) for word in words)]


def state_is(state: str, now: datetime) -> ColumnElement[bool]:
    """A broken device may be offline: then it is both."""
    works = select(Request.binding_id).where(
        Request.status.in_(lifecycle.OPEN), Request.expires_at > now
    )
    is_bound = Device.priority != Priority.REVOKED
    return {
        "offline": Device.priority.in_(SILENT),
        "closed": Device.priority == Priority.CLOSED,
        "maintenance": Device.priority == Priority.MAINTENANCE,
        "never-seen": Device.priority == Priority.NEVER_SEEN,
        "broken": and_(is_bound, Device.tone == "bad"),
        "warned": and_(is_bound, Device.tone == "warn"),
        "online": Device.priority.in_(HEARD),
        "working": Device.binding_id.in_(works),
        "revoked": Device.priority == Priority.REVOKED,
        "all": true(),
    }[state]


def rows(
    session: Session, devices: Sequence[Device], now: datetime, settings: Settings
) -> tuple[Row, ...]:
    records = device_records(session, devices, now, settings)
    lines = _newest(session, devices)
    requests = _open_requests(session, devices, now)
    wishes = pending_requests_of(session, devices)
    said = places(session, now, {(each.organization_id, each.location_id) for each in devices})
    return tuple(
        Row(
            device=record,
            state=_state(device, said, now, settings),
            maintenance_until=_maintenance_until(device, said, now, settings),
            tone=device.tone,
            reports=tuple(
                lines[each]
                for each in (device.network_report, device.application_report)
                if each in lines
            ),
            requests=tuple(requests[device.binding_id]),
            wishes=wishes.get((device.organization_id, device.instance_id), ()),
        )
        for device, record in zip(devices, records, strict=True)
    )


def rows_at(
    session: Session, positions: Collection[int], now: datetime, settings: Settings
) -> dict[int, Row]:
    """Return the rows of the devices at these positions."""
    devices = _devices(session, positions)
    made = rows(session, devices, now, settings)
    return {device.position: row for device, row in zip(devices, made, strict=True)}


def line_of(report: Report) -> ReportLine:
    return ReportLine(
        report_id=report.id,
        instance_id=report.instance_id,
        request_id=report.request_id,
        kind=report.kind,
        outcome=report.outcome,
        created_at=report.created_at,
        tone=report.tone,
        headline=report.headline,
    )


def names_of_askers(session: Session, ids: Collection[str]) -> dict[str, str]:
    """Return the names of the people and API keys that asked, by what requests call them."""
    keys = []
    for each in ids:
        try:
            keys.append(UUID(each))
        except ValueError:
            continue
    query = union_all(
        select(ApiKey.id, ApiKey.name).where(ApiKey.id.in_(keys)),
        select(User.id, User.name).where(User.id.in_(keys)),
    )
    return {str(row.id): row.name for row in session.execute(query)}


def _devices(session: Session, positions: Collection[int]) -> list[Device]:
    query = select(Device).where(Device.position.in_(positions))
    return list(session.scalars(query.order_by(Device.priority, Device.position)))


def _state(device: Device, said: Places, now: datetime, settings: Settings) -> RowState:
    if device.revoked_at is not None:
        return "revoked"
    found = _standing(device, said, now, settings).state
    if found == "heard":
        return "online"
    if found != "offline":
        return found
    return "offline" if device.last_seen_at > device.enrolled_at else "never-seen"


def _maintenance_until(
    device: Device, said: Places, now: datetime, settings: Settings
) -> datetime | None:
    return _standing(device, said, now, settings).until


def _standing(device: Device, said: Places, now: datetime, settings: Settings) -> Standing:
    place = said[device.organization_id, device.location_id]
    window = settings.offline_window
    return standing(place, device.instance_id, device.last_seen_at, now, window)


def _newest(session: Session, devices: Sequence[Device]) -> dict[int | None, ReportLine]:
    positions = {each for d in devices for each in (d.network_report, d.application_report) if each}
    query = select(Report).where(Report.position.in_(positions)).options(LINE)
    return {report.position: line_of(report) for report in session.scalars(query)}


def _open_requests(
    session: Session, devices: Sequence[Device], now: datetime
) -> dict[UUID, list[OpenRequest]]:
    query = (
        select(Request)
        .where(
            Request.binding_id.in_([device.binding_id for device in devices]),
            Request.status.in_(lifecycle.OPEN),
            Request.expires_at > now,
        )
        .order_by(Request.position)
    )
    requests = session.scalars(query).all()
    askers = names_of_askers(session, {each.requested_by_id for each in requests})
    found: dict[UUID, list[OpenRequest]] = defaultdict(list)
    for each in requests:
        found[each.binding_id].append(
            OpenRequest(
                id=each.id,
                kind=each.kind,
                status=each.status,
                created_at=each.created_at,
                started_at=each.started_at,
                asked_by=askers.get(each.requested_by_id),
            )
        )
    return found


def _holds(word: str) -> ColumnElement[bool]:
    # As one text: each comparison of 50,000 devices counts. A word holds no blank.
    text = (
        Device.legacy_install_id.concat(" ")
        .concat(Device.location_id)
        .concat(" ")
        .concat(Device.platform)
        .concat(" ")
        .concat(func.coalesce(Device.app_version, ""))
    )
    return or_(text.icontains(word, autoescape=True), *_begins_id(word))


def _begins_id(word: str) -> list[ColumnElement[bool]]:
    """An id is found by its beginning, whichever way the database keeps it."""
    digits = word.replace("-", "").lower()
    if not ID_STARTS_AT <= len(digits) <= 32 or set(digits) - set("0123456789abcdef"):
        return []
    return [Device.instance_id.between(UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f")))]
