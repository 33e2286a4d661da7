"""Reads the timeline of a device from the database."""

from collections import Counter
from datetime import date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from controlplane.devices.locations.locations import MAINTENANCE_KEPT, schedules, zones
from controlplane.devices.locations.status import Schedule
from controlplane.devices.timeline.timeline import DAYS, Events, Liveness, Timeline, build_timeline
from controlplane.storage.monitoring_tables import MonitoringState, OfflineInterval
from controlplane.storage.tables import Device, Report, Request

EVENTS_MAX: Final = 5000
"""Maximum number of requests, and of reports, that are counted. Only the newest are counted."""
INTERVALS_MAX: Final = 5000
"""Maximum number of offline intervals that are read. Only the newest are read."""


def timeline_of(session: Session, device: Device, now: datetime) -> Timeline:
    """Return the timeline of a device for the last thirty days."""
    location_key = (device.organization_id, device.location_id)
    zone = zones(session, {location_key}).get(location_key, "UTC")
    # A day more, because thirty local days can be longer than 30 × 24 hours.
    since = now - timedelta(days=DAYS + 1)
    # `schedules(now)` returns the windows that ended after ``now - MAINTENANCE_KEPT``. This call
    # returns those that ended after ``since``.
    schedule = schedules(session, since + MAINTENANCE_KEPT, {location_key})[location_key]
    time_zone = ZoneInfo(zone)
    return build_timeline(
        _liveness(session, device, now, since),
        Schedule(schedule.hours, schedule.windows_of(device.instance_id)),
        zone,
        now,
        Events(
            _by_day(session, Request, device, since, time_zone),
            _by_day(session, Report, device, since, time_zone),
        ),
    )


def _liveness(session: Session, device: Device, now: datetime, since: datetime) -> Liveness:
    query = (
        select(OfflineInterval)
        .where(
            or_(OfflineInterval.device == device.position, OfflineInterval.device.is_(None)),
            or_(OfflineInterval.until.is_(None), OfflineInterval.until > since),
        )
        .order_by(OfflineInterval.since.desc())
        .limit(INTERVALS_MAX)
    )
    rows = session.scalars(query).all()  # a row without a device is an outage of the service
    monitoring = session.get(MonitoringState, 1)
    return Liveness(
        # Nothing is known of the time before monitoring began.
        since=max(device.created_at, now if monitoring is None else monitoring.started_at),
        until=device.revoked_at or now,
        offline=tuple((row.since, row.until) for row in rows if row.device is not None),
        outages=tuple((row.since, row.until or now) for row in rows if row.device is None),
    )


def _by_day(
    session: Session,
    table: type[Request] | type[Report],
    device: Device,
    since: datetime,
    time_zone: ZoneInfo,
) -> Counter[date]:
    query = (
        select(table.created_at)
        .where(
            table.instance_id == device.instance_id,
            table.organization_id == device.organization_id,
            table.created_at > since,
        )
        .order_by(table.position.desc())
        .limit(EVENTS_MAX)
    )
    return Counter(timestamp.astimezone(time_zone).date() for timestamp in session.scalars(query))
