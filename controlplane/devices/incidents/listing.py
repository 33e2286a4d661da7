"""The incidents of locations, newest first. Incidents that devices share are one entry.

For each page, the next rows of `DeviceIncident` are read, newest first. Then the incidents that
began shortly before or after them at the same locations are read, and all of them are grouped.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, or_, select, tuple_
from sqlalchemy.orm import aliased

from agent.presentation.connectivity.titles import CAUSE_TITLES
from controlplane.accounts.names import names_of
from controlplane.devices.incidents import records
from controlplane.devices.incidents.contents import seconds_of
from controlplane.devices.incidents.grouping import (
    SHARED_WITHIN_S,
    Group,
    Incident,
    Period,
    cause_of,
    devices_of,
    explanation_of,
    groups_of,
    is_shared,
    observers_of,
)
from controlplane.devices.incidents.storing import INCIDENTS_KEPT
from controlplane.operation.context import RequestContext
from controlplane.operation.cursors import SortKey
from controlplane.storage.report_tables import DeviceIncident, RecordPeriod
from controlplane.storage.statements import in_steps
from controlplane.storage.tables import Device

DEVICE_PAGE_DAYS: Final = 7
DEVICE_PAGE_MAX: Final = 8
"""Maximum number of shared incidents on the page of a device."""
_MARGIN_S: Final = 8 * SHARED_WITHIN_S
"""How long before an incident the first query searches for the start of its group."""
_SPANS_MAX: Final = 100
"""Maximum number of spans in one query."""


class _Row(NamedTuple):
    """The key of an incident, and its location. Lists are ordered by the key."""

    began_s: int
    position: int
    location_id: str


class _Span(NamedTuple):
    """The period of a location from ``low_s`` to ``high_s`` in which incidents are read.

    `_read_groups` moves ``low_s`` back until the group of every incident from ``target_s`` on is
    complete.
    """

    location_id: str
    low_s: int
    target_s: int
    high_s: int


def incidents(context: RequestContext, body: records.IncidentsRequest) -> records.IncidentsReply:
    """Return a page of incidents at locations, newest first."""
    size, days = body.size or records.PAGE_DEFAULT, body.days or records.DAYS_DEFAULT
    listing = (context.organization_id, "incidents", body.location or "", str(days))
    conditions = [_began_within(context, days)]
    if body.location is not None:
        conditions.append(DeviceIncident.location_id == body.location)
    if body.shared:
        conditions.append(_is_near_another())
    if body.cursor is not None:
        before = context.cursors.read(listing, body.cursor)
        key = tuple_(DeviceIncident.began_s, DeviceIncident.position)
        conditions.append(key < tuple_(*before))
    rows = _read_newest(context, conditions, size + 1)
    page = rows[:size]
    # A group is on the page of the incident that began first.
    positions_on_page = {row.position for row in page}
    groups = [each for each in _read_groups(context, page) if each[0].position in positions_on_page]
    if body.shared:
        groups = [each for each in groups if is_shared(each)]
    return records.IncidentsReply(
        incidents=_records(context, groups),
        next_cursor=context.cursors.write(listing, SortKey(page[-1].began_s, page[-1].position))
        if len(rows) > size
        else None,
    )


def shared_incidents_of(
    context: RequestContext, device: Device
) -> tuple[records.IncidentRecord, ...]:
    """Return the newest shared incidents in which a device took part."""
    conditions = [
        _began_within(context, DEVICE_PAGE_DAYS),
        DeviceIncident.device == device.position,
        _is_near_another(),
    ]
    rows = _read_newest(context, conditions, DEVICE_PAGE_MAX)
    positions = {row.position for row in rows}
    groups = [
        group
        for group in _read_groups(context, rows)
        if is_shared(group) and any(each.position in positions for each in group)
    ]
    return _records(context, groups)


def _began_within(context: RequestContext, days: int) -> ColumnElement[bool]:
    since_s = seconds_of(context.now - timedelta(days=days))
    return DeviceIncident.began_s >= since_s


def _is_near_another() -> ColumnElement[bool]:
    """Return the condition for incidents that began soon before or after one of another device."""
    other_incident = aliased(DeviceIncident)
    return (
        select(other_incident.position)
        .where(
            other_incident.organization_id == DeviceIncident.organization_id,
            other_incident.location_id == DeviceIncident.location_id,
            other_incident.began_s >= DeviceIncident.began_s - SHARED_WITHIN_S,
            other_incident.began_s <= DeviceIncident.began_s + SHARED_WITHIN_S,
            other_incident.device != DeviceIncident.device,
        )
        .exists()
    )


def _read_newest(
    context: RequestContext, conditions: Iterable[ColumnElement[bool]], count: int
) -> list[_Row]:
    query = (
        select(DeviceIncident.began_s, DeviceIncident.position, DeviceIncident.location_id)
        .where(context.visible(DeviceIncident), *conditions)
        .order_by(DeviceIncident.began_s.desc(), DeviceIncident.position.desc())
        .limit(count)
    )
    return [_Row(*row) for row in context.session.execute(query)]


def _read_groups(context: RequestContext, rows: Sequence[_Row]) -> list[Group]:
    """Return the groups with these incidents, and other groups near them, newest first.

    The groups with these incidents are complete. The other groups can lack incidents.
    """
    incidents: dict[int, Incident] = {}
    margin_s, spans = _MARGIN_S, _spans(rows)
    oldest_s = seconds_of(context.now - 2 * INCIDENTS_KEPT)  # older incidents have been deleted
    while spans:
        read_incidents = _read_incidents(context, spans)
        incidents |= {each.position: each for each in read_incidents}
        starts = defaultdict[str, list[int]](list)
        for each in read_incidents:
            starts[each.location_id].append(each.began_s)
        margin_s *= 8
        spans = [
            each._replace(low_s=each.target_s - margin_s)
            for each in spans
            if each.low_s > oldest_s and not _has_start_of_group(each, starts[each.location_id])
        ]
    by_location = defaultdict[str, list[Incident]](list)
    for each in incidents.values():
        by_location[each.location_id].append(each)
    groups = [group for each in by_location.values() for group in groups_of(each)]
    return sorted(groups, key=lambda group: (-group[0].began_s, -group[0].position))


def _spans(rows: Iterable[_Row]) -> list[_Span]:
    """Return the periods to read for the groups of these incidents. The periods do not overlap."""
    spans: list[_Span] = []
    for row in sorted(rows, key=lambda row: (row.location_id, row.began_s)):
        low_s, high_s = row.began_s - _MARGIN_S, row.began_s + SHARED_WITHIN_S
        if spans and spans[-1].location_id == row.location_id and low_s <= spans[-1].high_s:
            spans[-1] = spans[-1]._replace(high_s=high_s)
        else:
            spans.append(_Span(row.location_id, low_s, row.began_s, high_s))
    return spans


def _read_incidents(context: RequestContext, spans: Sequence[_Span]) -> list[Incident]:
    columns = [getattr(DeviceIncident, each.name) for each in fields(Incident)]
    results: list[Incident] = []
    for step in in_steps(spans, _SPANS_MAX):
        query: Select[Any] = select(*columns).where(
            or_(
                *(
                    and_(
                        DeviceIncident.organization_id == context.organization_id,
                        DeviceIncident.location_id == each.location_id,
                        DeviceIncident.began_s.between(each.low_s, each.high_s),
                    )
                    for each in step
                )
            )
        )
        results += (Incident(*row) for row in context.session.execute(query))
    return results


def _has_start_of_group(span: _Span, starts: Iterable[int]) -> bool:
    """Return whether one of the incidents up to the target certainly begins a group.

    That is certain if no other incident began within `SHARED_WITHIN_S` before the incident.

    Args:
        starts: when the incidents at this location began.
    """
    before_s = span.low_s - 1  # an incident that was not read can have begun then
    for began_s in sorted(each for each in starts if span.low_s <= each <= span.target_s):
        if began_s > before_s + SHARED_WITHIN_S:
            return True
        before_s = began_s
    return False


def _records(
    context: RequestContext, groups: Sequence[Group]
) -> tuple[records.IncidentRecord, ...]:
    organization_id = context.organization_id
    locations = {group[0].location_id for group in groups}
    names = names_of(context.session, ((organization_id, each) for each in locations))
    devices = _read_devices(context, groups)
    periods = _read_periods(context, groups)

    def record_of_group(group: Group) -> records.IncidentRecord:
        location_id, cause = group[0].location_id, cause_of(group)
        observer_count = len(observers_of(group, periods.get(location_id, ())))
        explanation = explanation_of(group, observer_count)
        ends = [each.ended_s for each in group]
        return records.IncidentRecord(
            location_id=location_id,
            location_name=names.location(organization_id, location_id),
            began_at=_at(group[0].began_s),
            ended_at=None if None in ends else _at(max(each or 0 for each in ends)),
            cause=cause,
            title=CAUSE_TITLES[cause].sentence,
            device_count=len(devices_of(group)),
            observer_count=observer_count,
            loss=explanation and explanation.loss,
            suspect=explanation and explanation.suspect,
            incidents=tuple(_incident_record(each, devices[each.device]) for each in group),
        )

    return tuple(map(record_of_group, groups))


def _incident_record(incident: Incident, device: Device) -> records.DeviceIncidentRecord:
    return records.DeviceIncidentRecord(
        instance_id=device.instance_id,
        name=device.legacy_install_id,
        cause=incident.cause,
        began_at=_at(incident.began_s),
        ended_at=None if incident.ended_s is None else _at(incident.ended_s),
        downtime_seconds=incident.downtime_s,
        count=incident.count,
        evidence=incident.evidence,
        clock_correction_seconds=incident.correction_s,
    )


def _read_devices(context: RequestContext, groups: Iterable[Group]) -> dict[int, Device]:
    positions = {each for group in groups for each in devices_of(group)}
    devices: dict[int, Device] = {}
    for step in in_steps(positions):
        query = select(Device).where(Device.position.in_(step))
        devices |= {each.position: each for each in context.session.scalars(query)}
    return devices


def _read_periods(context: RequestContext, groups: Sequence[Group]) -> dict[str, list[Period]]:
    """Return the recorded periods of the locations of these groups, by location."""
    periods = defaultdict[str, list[Period]](list)
    if not groups:
        return periods
    oldest_s = min(group[0].began_s for group in groups)
    columns = [getattr(RecordPeriod, name) for name in Period._fields]
    for step in in_steps({group[0].location_id for group in groups}):
        query: Select[Any] = select(*columns).where(
            RecordPeriod.organization_id == context.organization_id,
            RecordPeriod.location_id.in_(step),
            RecordPeriod.until_s >= oldest_s,
        )
        for row in context.session.execute(query):
            period = Period(*row)
            periods[period.location_id].append(period)
    return periods


def _at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
