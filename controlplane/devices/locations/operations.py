"""Operations with which signed-in owners and managers change the settings of locations."""

import itertools
from collections.abc import Collection, Iterable
from datetime import datetime
from functools import partial
from typing import Final
from uuid import UUID

from sqlalchemy import func, select

from agent.wire.device_operations import EmptyRequest
from controlplane.accounts.names import known_locations, names_of_organizations, require_known
from controlplane.devices.locations import messages
from controlplane.devices.locations.locations import (
    LocationKey,
    add_maintenance,
    end_maintenance,
    parse_time,
    set_zone_and_hours,
    zones,
)
from controlplane.devices.locations.opening_hours import Span, describe_hours, read_hours
from controlplane.devices.locations.status import Maintenance, describe_period
from controlplane.merchant.locations import name_location, name_organization
from controlplane.operation.audit_entries import Event, Operation, Subject
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import (
    conflict,
    foreign_location,
    invalid_field,
    manager_required,
    not_found,
    read_only_key,
)
from controlplane.operation.operation import Procedure, procedure
from controlplane.operation.records import record_of
from controlplane.storage.monitoring_tables import AlertRoute, LocationHours, MaintenanceWindow
from controlplane.storage.tables import Device

PREFIX: Final = "/console/api/locations"
_write = partial(procedure, writes=True, requires_session=True)


def location_operations() -> tuple[Procedure, ...]:
    return (
        procedure(PREFIX, locations),
        _write(f"{PREFIX}/add", add_location),
        _write(f"{PREFIX}/name", rename_location),
        _write(f"{PREFIX}/hours", set_hours),
        _write(f"{PREFIX}/maintenance", start_maintenance),
        _write(f"{PREFIX}/end-maintenance", finish_maintenance),
        _write(f"{PREFIX}/name-organization", rename_organization),
    )


def locations(context: RequestContext, _body: EmptyRequest) -> messages.LocationsReply:
    """Return the locations that the caller may see, with their settings."""
    session, organization_id, caller = context.session, context.organization_id, context.caller
    existing_locations = known_locations(session, organization_id)
    names = {
        location_id: name
        for location_id, name in existing_locations.items()
        if caller.has_access_to(location_id)
    }
    location_keys = [(organization_id, location_id) for location_id in names]
    time_zones = zones(session, location_keys)
    hours = {
        row.location_id: row.opening_hours
        for row in session.scalars(select(LocationHours).filter_by(organization_id=organization_id))
    }
    windows = _windows(context, names)
    count = select(Device.location_id, func.count()).where(
        Device.organization_id == organization_id, Device.revoked_at.is_(None)
    )
    counts = {row[0]: row[1] for row in session.execute(count.group_by(Device.location_id))}
    records = [
        messages.LocationRecord(
            location_id=location_id,
            name=name,
            time_zone=time_zones.get((organization_id, location_id)),
            opening_hours=None
            if hours.get(location_id) is None
            else tuple(hours[location_id] or ()),
            maintenance=tuple(windows.get(location_id, ())),
            device_count=counts.get(location_id, 0),
        )
        for location_id, name in names.items()
    ]
    may_write = caller.kind == "session" and caller.can_write
    alerts_to: messages.WebhookOwner | None = None
    is_enabled = (AlertRoute.organization_id == organization_id) & AlertRoute.is_enabled
    if session.scalars(select(AlertRoute.id).where(is_enabled)).first() is not None:
        alerts_to = "organization"
    elif context.settings.notify_url is not None:
        alerts_to = "operator"
    return messages.LocationsReply(
        organization_name=names_of_organizations(session, (organization_id,)).get(organization_id),
        locations=tuple(
            sorted(records, key=lambda record: (record.name or record.location_id).lower())
        ),
        can_write=may_write,
        can_add=may_write and not caller.locations,
        alerts_to=alerts_to,
    )


def add_location(
    context: RequestContext, body: messages.LocationAddRequest
) -> messages.LocationAddReply:
    """Add a location. It is always open until its opening hours are set."""
    require_all_locations(context)
    existing_locations = known_locations(context.session, context.organization_id)
    location_id = body.location_id or _unused_id(existing_locations)
    if location_id in existing_locations:
        raise conflict(
            "existing_entity_conflict", f"the location id {location_id} is already in use"
        )
    location_key = (context.organization_id, location_id)
    name_location(context.session, location_key, body.name, context.now)
    try:
        set_zone_and_hours(context.session, location_key, body.time_zone, None, context.now)
    except ValueError as error:
        raise invalid_field("timeZone", str(error)) from None
    _note(context, "location.name", location_id, body.name)
    _note(context, "location.hours", location_id, describe_hours(None, body.time_zone))
    return messages.LocationAddReply(location_id=location_id, name=body.name)


def rename_location(
    context: RequestContext, body: messages.LocationNameRequest
) -> messages.NameReply:
    """Name a location."""
    location_key = require_location(context, body.location_id)
    name_location(context.session, location_key, body.name, context.now)
    _note(context, "location.name", body.location_id, body.name)
    return messages.NameReply(name=body.name)


def set_hours(
    context: RequestContext, body: messages.LocationHoursRequest
) -> messages.LocationHoursReply:
    """Set the time zone and the opening hours of a location."""
    location_key = require_location(context, body.location_id)
    for field, lines in (("timeZone", ()), ("openingHours", body.opening_hours or ())):
        try:
            read_hours(body.time_zone, lines)
        except ValueError as error:
            raise invalid_field(field, str(error)) from None
    is_zone_changed = set_zone_and_hours(
        context.session, location_key, body.time_zone, body.opening_hours, context.now
    )
    description = describe_hours(body.opening_hours, body.time_zone)
    _note(context, "location.hours", body.location_id, description)
    return messages.LocationHoursReply(recalculates=is_zone_changed)


def start_maintenance(
    context: RequestContext, body: messages.MaintenanceRequest
) -> messages.MaintenanceRecord:
    """Add a maintenance window for a location or for one of its devices."""
    location_key = require_location(context, body.location_id)
    device = _device(context, body.location_id, body.instance_id)
    since, until = period_of(context, location_key, body.since, body.until)
    window = Maintenance(body.instance_id, since, until)
    add_maintenance(context.session, location_key, window, body.reason)
    period = describe_period(since, until)
    _note(context, "maintenance.add", body.location_id, f"{period} {body.reason}".strip(), device)
    device_name = None if device is None else device.legacy_install_id
    return record_of(
        messages.MaintenanceRecord, window, device_name=device_name, reason=body.reason
    )


def finish_maintenance(
    context: RequestContext, body: messages.MaintenanceEndRequest
) -> messages.MaintenanceEndReply:
    """End the current maintenance windows, and cancel the planned ones.

    Without a device, this applies to the windows that cover the whole location. The windows of
    single devices continue.
    """
    location_key = require_location(context, body.location_id)
    device = _device(context, body.location_id, body.instance_id)
    ended_count = end_maintenance(context.session, location_key, body.instance_id, context.now)
    if ended_count:
        _note(context, "maintenance.end", body.location_id, "", device)
    return messages.MaintenanceEndReply(ended=ended_count)


def rename_organization(
    context: RequestContext, body: messages.OrganizationNameRequest
) -> messages.NameReply:
    """Name the organization of the session."""
    require_all_locations(context)
    organization_id = context.organization_id
    name_organization(context.session, organization_id, body.name, context.now)
    context.note(
        Event("organization.name", Subject("organization", organization_id), body.name)
    )  # fmt: skip
    return messages.NameReply(name=body.name)


def require_all_locations(context: RequestContext) -> None:
    """Refuse callers that may not change all locations of the organization."""
    if not context.caller.can_write or context.caller.locations:
        raise manager_required()


def require_location(context: RequestContext, location_id: str) -> LocationKey:
    """Return the key of a location.

    Refuses callers that may not change it, and unknown locations.
    """
    if not context.caller.can_write:
        raise read_only_key()
    if not context.caller.has_access_to(location_id):
        raise foreign_location()
    require_known(context, [location_id])
    return context.organization_id, location_id


def period_of(
    context: RequestContext, location_key: LocationKey, since: str | None, until: str
) -> Span:
    """Return the start and the end of a period. ``since`` None means now.

    Times without a UTC offset are in the time zone of the location, or in UTC if it has none.
    Refuses invalid times, and a period that has ended or ends before it begins.
    """
    zone = zones(context.session, {location_key}).get(location_key, "UTC")
    start = context.now if since is None else _parse("since", since, zone)
    end = _parse("until", until, zone)
    if end <= max(context.now, start):
        raise invalid_field("until", "must be in the future, and after the start")
    return start, end


def _unused_id(existing_ids: Collection[str]) -> str:
    """Return an unused id such as ``loc-0004``.

    With 3 existing locations, for example, ``loc-0004`` is tried first, and then ``loc-0005``.
    """
    ids = (f"loc-{number:04}" for number in itertools.count(len(existing_ids) + 1))
    return next(location_id for location_id in ids if location_id not in existing_ids)


def _device(context: RequestContext, location_id: str, instance_id: UUID | None) -> Device | None:
    if instance_id is None:
        return None
    device = context.device(instance_id)
    if device.location_id != location_id:
        raise not_found("device")
    return device


def _parse(field: str, text: str, zone: str) -> datetime:
    try:
        return parse_time(text, zone)
    except ValueError as error:
        raise invalid_field(field, str(error)) from None


def _note(
    context: RequestContext,
    operation: Operation,
    location_id: str,
    detail: str,
    device: Device | None = None,
) -> None:
    device_text = "" if device is None else f"device {device.instance_id}"
    context.note(Event(operation, Subject("location", location_id, device_text), detail))


def _windows(
    context: RequestContext, ids: Collection[str]
) -> dict[str, list[messages.MaintenanceRecord]]:
    """Return the current and planned maintenance windows by location, the earliest first."""
    query = select(MaintenanceWindow).where(
        MaintenanceWindow.organization_id == context.organization_id,
        MaintenanceWindow.until > context.now,
    )
    rows = [
        row
        for row in context.session.scalars(query.order_by(MaintenanceWindow.since))
        if row.location_id in ids
    ]
    names = device_names(context, (row.instance_id for row in rows if row.instance_id))
    windows: dict[str, list[messages.MaintenanceRecord]] = {}
    for row in rows:
        device_name = names.get(str(row.instance_id))
        record = record_of(messages.MaintenanceRecord, row, device_name=device_name)
        windows.setdefault(row.location_id, []).append(record)
    return windows


def device_names(context: RequestContext, ids: Iterable[UUID]) -> dict[str, str]:
    """Return the names of the devices that the caller may see, by instance id as a text."""
    query = select(Device.instance_id, Device.legacy_install_id).where(
        context.visible(Device), Device.instance_id.in_(set(ids))
    )
    return {str(row[0]): row[1] for row in context.session.execute(query)}
