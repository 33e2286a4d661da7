"""Stores the incidents of a report.

Reports repeat and extend the incidents of earlier reports, and can arrive in any order.
"""

from collections.abc import Iterable
from dataclasses import asdict, fields
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from agent.wire.payloads.history import Cause
from controlplane.devices.incidents.contents import (
    CLOCK_OFF_S,
    IncidentContent,
    RecordContent,
    correction_s,
    seconds_of,
)
from controlplane.storage.report_tables import DeviceIncident, RecordPeriod
from controlplane.storage.statements import change_rows
from controlplane.storage.tables import Binding, Device

INCIDENTS_KEPT: Final = timedelta(days=30)
"""Retention period of incidents and recorded periods."""
INCIDENTS_MAX: Final = 256
"""Maximum number of incidents of a device. The newest are kept."""
PERIODS_MAX: Final = 32
"""Maximum number of older recorded periods of a device that are kept when a report arrives."""

Key = tuple[int, Cause]
"""The start of an incident by the clock of the device (``reported_s``), and its cause."""
_CONTENT_COLUMNS: Final = [getattr(DeviceIncident, each.name) for each in fields(IncidentContent)]


def store_record(
    session: Session, device: Device, record: RecordContent, arrived_at: datetime
) -> None:
    """Store the incidents of a report, and the period that its record covers.

    An incident belongs to the location to which the device was bound when the incident began. An
    incident is left out if it began while the device was not bound, in the future, or too long ago.
    """
    arrived_s = seconds_of(arrived_at)
    oldest_s = seconds_of(arrived_at - INCIDENTS_KEPT)
    correction = correction_s(record, arrived_s)
    query = select(Binding.location_id, Binding.created_at, Binding.ended_at).where(
        Binding.instance_id == device.instance_id,
        Binding.organization_id == device.organization_id,
    )
    bindings = _Bindings(session.execute(query.order_by(Binding.created_at)))
    accepted_incidents = [
        each
        for each in record.incidents
        if oldest_s <= each.reported_s + correction <= arrived_s + CLOCK_OFF_S
    ]
    _store_incidents(session, device, accepted_incidents, correction, bindings)
    # By its times, the report may be old when it arrives. Then it was sent late and its times are
    # right, or the clock of the device is slow and the correction makes them right. The stored
    # period lies within the corrected and the uncorrected period of the report, so the report
    # covers the stored period in both cases.
    since_s = max(record.since_s + correction, oldest_s)
    until_s = min(record.finished_s + min(correction, 0), arrived_s)
    _store_periods(session, device, bindings.within(since_s, until_s), oldest_s)


class _Bindings:
    """The bindings of a device, the oldest first."""

    def __init__(self, bindings: Iterable[Any]) -> None:
        self._periods = [
            (
                binding.location_id,
                seconds_of(binding.created_at),
                None if binding.ended_at is None else seconds_of(binding.ended_at),
            )
            for binding in bindings
        ]

    def location_at(self, at_s: int) -> str | None:
        """Return the location of the device at a time; None if it was not bound."""
        for location_id, began_s, ended_s in reversed(self._periods):
            if began_s <= at_s:
                return location_id if ended_s is None or at_s < ended_s else None
        return None

    def within(self, since_s: int, until_s: int) -> list[tuple[str, int, int]]:
        """Return the periods between two times in which the device was bound.

        Each period has a location, a start and an end. Times are in seconds since 1970.
        """
        periods = (
            # A binding does not include the second in which it ended.
            (location_id, max(began_s, since_s), until_s if end is None else min(until_s, end - 1))
            for location_id, began_s, end in self._periods
        )
        return [each for each in periods if each[1] <= each[2]]


def _store_incidents(
    session: Session,
    device: Device,
    incidents: Iterable[IncidentContent],
    correction: int,
    bindings: _Bindings,
) -> None:
    # Loading ORM objects would take twice as long, and most reports change none of the rows.
    query = select(DeviceIncident.position, DeviceIncident.correction_s, *_CONTENT_COLUMNS)
    query = query.where(DeviceIncident.device == device.position)
    stored_rows = {
        (row.reported_s, row.cause): (row.position, _content_of(row), row.correction_s)
        for row in session.execute(query)
    }
    contents = {key: content for key, (_, content, _) in stored_rows.items()}
    corrections = {key: seconds for key, (_, _, seconds) in stored_rows.items()}
    for each in incidents:
        key = (each.reported_s, each.cause)
        contents[key] = max(contents.get(key, each), each, key=_progress)
        # Several reports can contain the incident. A report that arrives late causes a correction
        # that is too large, so the smallest correction is the best.
        corrections[key] = min(corrections.get(key, correction), correction)
    for key in _keys_to_keep(contents):
        content, seconds = contents[key], corrections[key]
        stored = stored_rows.pop(key, None)
        if stored is not None and stored[1:] == (content, seconds):
            continue
        values = asdict(content) | {
            "began_s": content.reported_s + seconds,
            "ended_s": None if content.ended_s is None else content.ended_s + seconds,
            "correction_s": seconds,
        }
        if stored is not None:
            row = DeviceIncident.position == stored[0]
            change_rows(session, update(DeviceIncident).where(row).values(values))
        elif (location_id := bindings.location_at(values["began_s"])) is not None:
            location = {"organization_id": device.organization_id, "location_id": location_id}
            session.add(DeviceIncident(**location, **values, device=device.position))
    old_positions = [position for position, _, _ in stored_rows.values()]
    if old_positions:
        change_rows(
            session, delete(DeviceIncident).where(DeviceIncident.position.in_(old_positions))
        )


def _content_of(row: Any) -> IncidentContent:
    return IncidentContent(
        cause=row.cause,
        reported_s=row.reported_s,
        ended_s=None if row.ended_s is None else row.ended_s - row.correction_s,
        downtime_s=row.downtime_s,
        count=row.count,
        evidence=row.evidence,
    )


def _progress(incident: IncidentContent) -> tuple[int, int, bool]:
    """Return values that never shrink from one report to the next.

    Therefore the content with the largest values is the newest, whatever the order in which the
    reports arrive.
    """
    return incident.count, incident.downtime_s, incident.ended_s is not None


def _keys_to_keep(contents: dict[Key, IncidentContent]) -> list[Key]:
    """Return the keys of the newest incidents, without those that another incident replaces.

    The agent joins incidents with the same cause: the joined incident replaces those that began
    within it. The cause of an incident can change while it lasts: an incident that has ended
    replaces an unfinished one that began at the same time.
    """
    kept_keys: list[Key] = []
    ends: dict[Cause, int] = {}
    starts_of_ended: set[int] = set()
    for key in sorted(contents, key=lambda key: (key[0], contents[key].ended_s is None)):
        each = contents[key]
        is_part_of_joined = each.cause in ends and each.reported_s <= ends[each.cause]
        is_outdated = each.ended_s is None and each.reported_s in starts_of_ended
        if is_part_of_joined or is_outdated:
            continue
        if each.ended_s is not None:
            ends[each.cause] = each.ended_s
            starts_of_ended.add(each.reported_s)
        kept_keys.append(key)
    return kept_keys[-INCIDENTS_MAX:]


def _store_periods(
    session: Session, device: Device, periods: list[tuple[str, int, int]], oldest_s: int
) -> None:
    """Add periods. Periods at one location that overlap become one."""
    query = select(RecordPeriod).where(RecordPeriod.device == device.position)
    rows = session.scalars(query.order_by(RecordPeriod.until_s.desc())).all()
    recent_rows = [row for row in rows[:PERIODS_MAX] if row.until_s >= oldest_s]
    obsolete = [*rows[len(recent_rows) :]]
    for location_id, since_s, until_s in periods:
        overlapping = [
            row
            for row in recent_rows
            if row.location_id == location_id and row.since_s <= until_s and since_s <= row.until_s
        ]
        if overlapping:
            first, *duplicates = overlapping
            first.since_s = min(since_s, *(row.since_s for row in overlapping))
            first.until_s = max(until_s, *(row.until_s for row in overlapping))
            recent_rows = [row for row in recent_rows if row not in duplicates]
            obsolete += duplicates
        else:
            session.add(
                RecordPeriod(
                    organization_id=device.organization_id,
                    location_id=location_id,
                    device=device.position,
                    since_s=since_s,
                    until_s=until_s,
                )
            )
    for row in obsolete:
        session.delete(row)
