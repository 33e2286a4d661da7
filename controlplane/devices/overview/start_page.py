"""The console's start page: counts of devices by state, and the newest reports of the fleet."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from sqlalchemy import ColumnElement, Row, func, select
from sqlalchemy.orm import load_only
from sqlalchemy.orm.interfaces import ORMOption

from agent.wire.device_operations import EmptyRequest
from controlplane.accounts.names import names_of
from controlplane.devices.overview import records
from controlplane.devices.overview.listing import LINE, LINE_COLUMNS, state_is
from controlplane.devices.priority import HEALTHS, ONLINE, Priority, health_of
from controlplane.operation.context import RequestContext
from controlplane.operation.cursors import SortKey
from controlplane.operation.records import record_of
from controlplane.storage.tables import Device, Report

REPORTS_MAX: Final = 12
"""Maximum number of newest reports in the summary."""
SUMMARY = load_only(
    *LINE_COLUMNS,
    Report.organization_id,
    Report.failure_reason,
    Report.tracker_status,
    Report.tracker_event_id,
    raiseload=True,
)
"""Option of a query that loads the columns of `LINE` and of the contract's `ReportSummary`."""
VALUES_MAX: Final = 500
"""Maximum number of versions, or of locations, in the reply. Filters also accept versions and
locations that the reply leaves out."""


def summary(context: RequestContext, _body: EmptyRequest) -> records.SummaryReply:
    """Return counts of devices, and the newest reports."""
    groups = _count_groups(context)
    not_revoked = [each for each in groups if each.priority != Priority.REVOKED]
    return records.SummaryReply(
        states=_count_states(context, groups),
        versions=_counts((each.app_version, each.devices) for each in not_revoked),
        platforms=_counts((each.platform, each.devices) for each in not_revoked),
        locations=_locations(context),
        reports=tuple(
            record_of(records.NamedReport, report, report_id=report.id, name=name)
            for report, name in _read_newest(context, (), REPORTS_MAX, LINE)
        ),
        can_write=context.caller.can_write,
    )


Group = Row[int, str | None, str, str | None, int]
"""Priority, severity, platform and version, and the number of devices with these values."""


def _count_groups(context: RequestContext) -> Sequence[Group]:
    columns = (Device.priority, Device.severity, Device.platform, Device.app_version)
    query = select(*columns, func.count().label("devices")).where(context.visible(Device))
    return context.session.execute(query.group_by(*columns)).all()


def _count_states(context: RequestContext, groups: Sequence[Group]) -> dict[str, int]:
    def total(priorities: Collection[int]) -> int:
        return sum(each.devices for each in groups if each.priority in priorities)

    healths: Counter[str] = Counter(dict.fromkeys(HEALTHS, 0))
    for each in groups:
        healths[health_of(each.priority, each.severity)] += each.devices
    busy = select(func.count()).select_from(Device).where(context.visible(Device))
    return {
        "all": healths.total(),
        **healths,
        "online": total(ONLINE),
        "closed": total({Priority.CLOSED}),
        "maintenance": total({Priority.MAINTENANCE}),
        "busy": context.session.scalars(busy.where(state_is("busy", context.now))).one(),
    }


def _counts(values: Iterable[tuple[str | None, int]]) -> tuple[records.Count, ...]:
    results: Counter[str | None] = Counter()
    for value, count in values:
        results[value] += count
    return tuple(
        records.Count(value=value, count=n) for value, n in results.most_common(VALUES_MAX)
    )


def _locations(context: RequestContext) -> tuple[records.Count, ...]:
    query = (
        select(Device.location_id, func.count())
        .where(context.visible(Device))
        .group_by(Device.location_id)
        .order_by(Device.location_id)
        .limit(VALUES_MAX)
    )
    return tuple(records.Count(value=value, count=n) for value, n in context.session.execute(query))


def reports(context: RequestContext, body: records.ReportsRequest) -> records.ReportsReply:
    """Return a page of reports with their headlines, newest first."""
    size = body.size or records.PAGE_DEFAULT
    listing = (context.organization_id, "reports")
    conditions = []
    if body.instance_id is not None:
        conditions.append(Report.instance_id == body.instance_id)
    if body.kind is not None:
        conditions.append(Report.kind == body.kind)
    if body.since is not None:
        conditions.append(Report.created_at >= body.since)
    if body.cursor is not None:
        before, _ = context.cursors.read(listing, body.cursor)
        conditions.append(Report.position < before)
    rows = _read_newest(context, conditions, size + 1, SUMMARY)
    locations = ((context.organization_id, report.location_id) for report, _ in rows)
    names = names_of(context.session, locations)
    return records.ReportsReply(
        reports=tuple(
            record_of(
                records.ListedReport,
                report,
                report_id=report.id,
                name=name,
                location_name=names.location(context.organization_id, report.location_id),
            )
            for report, name in rows[:size]
        ),
        next_cursor=context.cursors.write(listing, SortKey(rows[size - 1][0].position, 0))
        if len(rows) > size
        else None,
    )


def _read_newest(
    context: RequestContext,
    conditions: Iterable[ColumnElement[bool]],
    count: int,
    columns: ORMOption,
) -> list[tuple[Report, str]]:
    """Return the newest reports that match, each with the name of its device."""
    query = (
        select(Report, Device.legacy_install_id)
        .join(
            Device,
            (Device.instance_id == Report.instance_id)
            & (Device.organization_id == Report.organization_id),
        )
        .where(context.visible(Report), *conditions)
        .order_by(Report.position.desc())
        .limit(count)
        .options(columns)
    )
    return [(row[0], row[1]) for row in context.session.execute(query)]
