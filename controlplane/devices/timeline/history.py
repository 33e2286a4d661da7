"""The thirty days of a device as the console and the command line show them."""

from collections import Counter
from datetime import date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from controlplane.devices.locations.locations import REMEMBERED, places, zones
from controlplane.devices.locations.status import Place
from controlplane.devices.timeline.records import Presence, PresenceCell, PresenceDay
from controlplane.devices.timeline.timeline import DAYS, Cell, Known, line_of, strip
from controlplane.storage.tables import Device, Report, Request
from controlplane.storage.watch_tables import Gap, Listened

EVENTS_MAX: Final = 5000
"""Requests or reports that are counted; who asks a device more often sees the newest."""
GAPS_MAX: Final = 5000


def presence_of(session: Session, device: Device, now: datetime) -> Presence:
    at = (device.organization_id, device.location_id)
    zone = zones(session, {at}).get(at, "UTC")
    first = now - timedelta(days=DAYS + 1)
    said = places(session, first + REMEMBERED, {at})[at]
    place = Place(said.hours, said.of(device.instance_id))
    days = strip(_known(session, device, now, first), place, zone, now)
    clock = ZoneInfo(zone)
    requests = _by_day(session, Request, device, first, clock)
    reports = _by_day(session, Report, device, first, clock)
    return Presence(
        zone=zone,
        line=line_of(days),
        days=tuple(
            PresenceDay(
                state=day.cell.state,
                heard_s=day.cell.heard_s,
                offline_s=day.cell.offline_s,
                closed_s=day.cell.closed_s,
                date=day.date.isoformat(),
                requests=requests[day.date],
                reports=reports[day.date],
                hours=tuple(_cell(hour) for hour in day.hours),
            )
            for day in days
        ),
    )


def _cell(cell: Cell) -> PresenceCell:
    return PresenceCell(
        state=cell.state, heard_s=cell.heard_s, offline_s=cell.offline_s, closed_s=cell.closed_s
    )


def _known(session: Session, device: Device, now: datetime, first: datetime) -> Known:
    query = (
        select(Gap)
        .where(
            or_(Gap.device == device.position, Gap.device.is_(None)),
            or_(Gap.until.is_(None), Gap.until > first),
        )
        .order_by(Gap.since.desc())
        .limit(GAPS_MAX)
    )
    rows = session.scalars(query).all()
    noted = session.get(Listened, 1)
    return Known(
        # Before the service noted silence there is nothing to tell of.
        since=max(device.created_at, now if noted is None else noted.began_at),
        until=device.revoked_at or now,
        gaps=tuple((row.since, row.until) for row in rows if row.device is not None),
        breaks=tuple((row.since, row.until or now) for row in rows if row.device is None),
    )


def _by_day(
    session: Session,
    table: type[Request] | type[Report],
    device: Device,
    first: datetime,
    clock: ZoneInfo,
) -> Counter[date]:
    query = (
        select(table.created_at)
        .where(
            table.instance_id == device.instance_id,
            table.organization_id == device.organization_id,
            table.created_at > first,
        )
        .order_by(table.position.desc())
        .limit(EVENTS_MAX)
    )
    return Counter(moment.astimezone(clock).date() for moment in session.scalars(query))
