"""``venue-control locations``: what places are called, and when they are open or worked on, said
directly in the database."""

import argparse
import sys
from datetime import UTC, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.accounts.users import NAME_MAX
from controlplane.cli.keys import in_database, require_database, require_locations
from controlplane.client.errors import CommandError, UsageError
from controlplane.clock import system_clock
from controlplane.devices.locations.locations import (
    At,
    add_maintenance,
    end_maintenance,
    set_location,
    zones,
)
from controlplane.devices.locations.opening_hours import format_hours, read_hours
from controlplane.devices.locations.status import Maintenance
from controlplane.merchant.locations import name_location, name_organization
from controlplane.operation.audit_entries import COMMAND_LINE, Event, Operation, Subject, note
from controlplane.storage.merchant.merchant_tables import Location, Organization
from controlplane.storage.monitoring_tables import LocationHours, MaintenanceWindow


def set_hours(options: argparse.Namespace) -> int:
    at = (options.organization, options.id)
    lines = None if options.always_open else options.open
    try:
        hours = read_hours(options.zone, lines or ())
    except ValueError as error:
        raise UsageError(str(error)) from error

    def work(session: Session) -> bool:
        detail = f"{'always open' if lines is None else ', '.join(lines)} ({options.zone})"
        _note(session, at, "location.hours", detail)
        return set_location(session, at, options.zone, lines, system_clock())

    is_counted_anew = in_database(options.database, work)
    said = "always open" if lines is None else ", ".join(format_hours(hours))
    sys.stdout.write(f"{options.id}: {said} ({options.zone})\n")
    if is_counted_anew:
        sys.stderr.write("Its zone is another: the figures of its sales are counted anew.\n")
    return 0


def name(options: argparse.Namespace) -> int:
    if options.of_organization == (options.id is not None):
        raise UsageError("name a location by its id, or the organization by --of-organization")
    called = options.name.strip()
    if not 1 <= len(called) <= NAME_MAX or not called.isprintable():
        raise UsageError(f"a name has 1 to {NAME_MAX} printable characters")
    if options.id is None:
        in_database(options.database, lambda session: _name_organization(session, options, called))
    else:
        require_locations([options.id])
        in_database(options.database, lambda session: _name_location(session, options, called))
    sys.stdout.write(f"{options.id or options.organization}: {called}\n")
    return 0


def quiet(options: argparse.Namespace) -> int:
    require_database(options)
    device = None if options.device is None else _device_id(options.device)
    at = (options.organization, options.id)
    now = system_clock()
    if options.end:
        ended = in_database(options.database, lambda session: _end(session, at, device, now))
        if not ended:
            raise CommandError(f"nothing was said of {options.id} that could end")
        sys.stdout.write(f"{options.id}: over\n")
        return 0
    window = in_database(options.database, lambda session: _add(session, options, device, now))
    sys.stdout.write(f"{options.id}: until {window.until:%Y-%m-%d %H:%M} UTC\n")
    return 0


def list_all(options: argparse.Namespace) -> int:
    require_database(options)
    now = system_clock()
    lines = in_database(
        options.database, lambda session: _described(session, options.organization, now)
    )
    sys.stdout.write("\n".join(lines or ["Nothing was said of any location: all are always open."]))
    sys.stdout.write("\n")
    return 0


def _name_organization(session: Session, options: argparse.Namespace, called: str) -> None:
    now, organization = system_clock(), options.organization
    name_organization(session, organization, called, now)
    event = Event("organization.name", Subject("organization", organization), called)
    note(session, COMMAND_LINE, event, organization_id=organization, now=now)


def _name_location(session: Session, options: argparse.Namespace, called: str) -> None:
    at = (options.organization, options.id)
    name_location(session, at, called, system_clock())
    _note(session, at, "location.name", called)


def _end(session: Session, at: At, device: UUID | None, now: datetime) -> int:
    ended = end_maintenance(session, at, device, now)
    if ended:
        _note(session, at, "maintenance.end", "", device)
    return ended


def _note(
    session: Session, at: At, operation: Operation, detail: str, device: UUID | None = None
) -> None:
    subject = Subject("location", at[1], "" if device is None else f"device {device}")
    event = Event(operation, subject, detail)
    note(session, COMMAND_LINE, event, organization_id=at[0], now=system_clock())


def _device_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is not the id of a device: a UUID is needed") from error


def _add(
    session: Session, options: argparse.Namespace, device: UUID | None, now: datetime
) -> Maintenance:
    at = (options.organization, options.id)
    zone = zones(session, {at}).get(at, "UTC")
    since = now if options.since is None else _moment(options.since, zone)
    window = Maintenance(device, since, _moment(options.until, zone))
    if window.until <= max(now, since):
        raise UsageError(f"{options.until} is over already, or before it begins")
    add_maintenance(session, at, window, options.reason)
    until = f"{window.since:%Y-%m-%d %H:%M} to {window.until:%Y-%m-%d %H:%M} UTC"
    _note(session, at, "maintenance.add", f"{until} {options.reason or ''}".strip(), device)
    return window


def _moment(text: str, zone: str) -> datetime:
    """Read ISO 8601; without an offset it is on the location's clock."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is no moment: 2026-12-01T06:00 is one") from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(zone))).astimezone(UTC)


def _described(session: Session, organization_id: str, now: datetime) -> list[str]:
    lines = _names(session, organization_id)
    query = select(LocationHours).where(LocationHours.organization_id == organization_id)
    rows = session.scalars(query.order_by(LocationHours.location_id)).all()
    clocks = zones(session, [(organization_id, row.location_id) for row in rows])
    for row in rows:
        hours = row.opening_hours
        said = "always open" if hours is None else ", ".join(hours)
        zone = clocks.get((organization_id, row.location_id), "UTC")
        lines.append(f"{row.location_id}: {said} ({zone})")
    windows = select(MaintenanceWindow).where(
        MaintenanceWindow.organization_id == organization_id, MaintenanceWindow.until > now
    )
    for window in session.scalars(windows.order_by(MaintenanceWindow.since)):
        whose = f" {window.instance_id}" if window.instance_id else ""
        why = f": {window.reason}" if window.reason else ""
        until = f"{window.since:%Y-%m-%d %H:%M} to {window.until:%Y-%m-%d %H:%M} UTC"
        lines.append(f"{window.location_id}{whose}: maintenance {until}{why}")
    return lines


def _names(session: Session, organization_id: str) -> list[str]:
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
