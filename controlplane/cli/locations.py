"""``venue-control locations``: changes names, opening hours and maintenance windows of locations.

The commands change the database directly.
"""

import argparse
import sys
from datetime import datetime
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.cli.chosen_database import add_audit_entry, in_database
from controlplane.cli.keys import require_location_ids
from controlplane.client.errors import CommandError, UsageError
from controlplane.clock import system_clock
from controlplane.devices.locations.locations import (
    LocationKey,
    add_maintenance,
    end_maintenance,
    parse_time,
    set_zone_and_hours,
    zones,
)
from controlplane.devices.locations.opening_hours import describe_hours, format_hours, read_hours
from controlplane.devices.locations.status import Maintenance, describe_period
from controlplane.merchant.locations import name_location, name_organization
from controlplane.operation.audit_entries import Operation, Subject
from controlplane.operation.storable_text import NAME_MAX
from controlplane.storage.merchant.merchant_tables import Location, Organization
from controlplane.storage.monitoring_tables import LocationHours, MaintenanceWindow


def set_hours(options: argparse.Namespace) -> None:
    location_key = (options.organization, options.id)
    lines = None if options.always_open else options.open
    try:
        hours = read_hours(options.zone, lines or ())
    except ValueError as error:
        raise UsageError(str(error)) from error

    def work(session: Session) -> bool:
        _add_entry(session, location_key, "location.hours", describe_hours(lines, options.zone))
        return set_zone_and_hours(session, location_key, options.zone, lines, system_clock())

    is_zone_changed = in_database(options, work, may_create=True)
    hours_text = None if lines is None else format_hours(hours)
    print(f"{options.id}: {describe_hours(hours_text, options.zone)}")
    if is_zone_changed:
        sys.stderr.write("The time zone has changed: the sales figures were recalculated.\n")


def set_name(options: argparse.Namespace) -> None:
    if options.of_organization == (options.id is not None):
        raise UsageError("give either the id of a location or --of-organization")
    text = require_name(options.name)
    if options.id is not None:
        require_location_ids([options.id])

    def work(session: Session) -> None:
        now, organization = system_clock(), options.organization
        if options.id is not None:
            location_key = (organization, options.id)
            name_location(session, location_key, text, now)
            _add_entry(session, location_key, "location.name", text)
            return
        name_organization(session, organization, text, now)
        subject = Subject("organization", organization)
        add_audit_entry(session, "organization.name", subject, text, organization_id=organization)

    in_database(options, work, may_create=True)
    print(f"{options.id or options.organization}: {text}")


def require_name(text: str, noun: str = "a name") -> str:
    """Return ``text`` trimmed. It is a name, or another text with the same limits.

    Raises:
        UsageError: the text is empty, too long or not printable. The message calls it ``noun``.
    """
    name = text.strip()
    if not 1 <= len(name) <= NAME_MAX or not name.isprintable():
        raise UsageError(f"{noun} has 1 to {NAME_MAX} printable characters")
    return name


def set_maintenance(options: argparse.Namespace) -> None:
    device = None if options.device is None else _device_id(options.device)
    now = system_clock()
    if options.end:
        if not in_database(
            options, lambda session: _end_maintenance(session, options, device, now)
        ):
            raise CommandError(f"{options.id} has no maintenance window")
        print(f"{options.id}: maintenance ended")
    else:
        window = in_database(
            options, lambda session: _add_maintenance(session, options, device, now)
        )
        print(f"{options.id}: maintenance until {window.until:%Y-%m-%d %H:%M} UTC")


def list_all(options: argparse.Namespace) -> None:
    now = system_clock()
    lines = in_database(options, lambda session: _describe_all(session, options.organization, now))
    empty = "No location has a name, opening hours or a maintenance window: all are always open."
    print("\n".join(lines or [empty]))


def _add_entry(
    session: Session,
    location_key: LocationKey,
    operation: Operation,
    detail: str,
    device: UUID | None = None,
) -> None:
    subject = Subject("location", location_key[1], "" if device is None else f"device {device}")
    add_audit_entry(session, operation, subject, detail, organization_id=location_key[0])


def _end_maintenance(
    session: Session, options: argparse.Namespace, device: UUID | None, now: datetime
) -> int:
    location_key = (options.organization, options.id)
    ended_count = end_maintenance(session, location_key, device, now)
    if ended_count:
        _add_entry(session, location_key, "maintenance.end", "", device)
    return ended_count


def _device_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is not the id of a device, which is a UUID") from error


def _add_maintenance(
    session: Session, options: argparse.Namespace, device: UUID | None, now: datetime
) -> Maintenance:
    location_key = (options.organization, options.id)
    zone = zones(session, {location_key}).get(location_key, "UTC")
    since = now if options.since is None else _parse_time(options.since, zone)
    window = Maintenance(device, since, _parse_time(options.until, zone))
    if window.until <= max(now, since):
        raise UsageError(f"--until {options.until} is in the past, or before --from")
    add_maintenance(session, location_key, window, options.reason)
    detail = f"{describe_period(window.since, window.until)} {options.reason or ''}".strip()
    _add_entry(session, location_key, "maintenance.add", detail, device)
    return window


def _parse_time(text: str, zone: str) -> datetime:
    try:
        return parse_time(text, zone)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _describe_all(session: Session, organization_id: str, now: datetime) -> list[str]:
    lines = _describe_names(session, organization_id)
    query = select(LocationHours).where(LocationHours.organization_id == organization_id)
    rows = session.scalars(query.order_by(LocationHours.location_id)).all()
    zones_by_location = zones(session, [(organization_id, row.location_id) for row in rows])
    for row in rows:
        zone = zones_by_location.get((organization_id, row.location_id), "UTC")
        lines.append(f"{row.location_id}: {describe_hours(row.opening_hours, zone)}")
    windows = select(MaintenanceWindow).where(
        MaintenanceWindow.organization_id == organization_id, MaintenanceWindow.until > now
    )
    for window in session.scalars(windows.order_by(MaintenanceWindow.since)):
        device = f" {window.instance_id}" if window.instance_id else ""
        reason = f": {window.reason}" if window.reason else ""
        period = describe_period(window.since, window.until)
        lines.append(f"{window.location_id}{device}: maintenance {period}{reason}")
    return lines


def _describe_names(session: Session, organization_id: str) -> list[str]:
    lines = []
    organization = session.get(Organization, organization_id)
    if organization is not None:
        lines.append(f"{organization_id}: {organization.name} (the organization)")
    query = select(Location).where(
        Location.organization_id == organization_id, Location.name.is_not(None)
    )
    for row in session.scalars(query.order_by(Location.id)):
        lines.append(f"{row.id}: {row.name}" + (f" ({row.zone})" if row.zone else ""))
    return lines
