"""The console's start page: counts of devices by state, and the newest reports."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from sqlalchemy import Row, func, select

from controlplane.devices.overview import records
from controlplane.devices.overview.listing import LINE, state_is
from controlplane.devices.priority import NOT_ONLINE, OFFLINE, ONLINE, Priority
from controlplane.operation.context import RequestContext
from controlplane.operation.records import record_of
from controlplane.storage.tables import Device, Report

REPORTS: Final = 12
VALUES_MAX: Final = 500
"""Maximum number of versions, or of locations, in the reply. Filters also accept versions and
locations that the reply leaves out."""


def summary(context: RequestContext, _body: records.SummaryRequest) -> records.SummaryReply:
    """Return counts of devices, and the newest reports."""
    groups = _groups(context)
    bound = [each for each in groups if each.priority != Priority.REVOKED]
    return records.SummaryReply(
        states=_states(context, groups),
        versions=_counts((each.app_version, each.devices) for each in bound),
        platforms=_counts((each.platform, each.devices) for each in bound),
        locations=_locations(context),
        reports=tuple(_newest_reports(context)),
        can_write=context.caller.can_write,
    )


Group = Row[int, str | None, str, str | None, int]
"""Priority, severity, platform and version, and the number of devices with these values."""


def _groups(context: RequestContext) -> Sequence[Group]:
    alike = (Device.priority, Device.severity, Device.platform, Device.app_version)
    query = select(*alike, func.count().label("devices")).where(context.visible(Device))
    return context.session.execute(query.group_by(*alike)).all()


def _states(context: RequestContext, groups: Sequence[Group]) -> dict[str, int]:
    def total(priorities: Collection[int], severity: str | None = None) -> int:
        return sum(
            each.devices
            for each in groups
            if each.priority in priorities and (severity is None or each.severity == severity)
        )

    bound = ONLINE | NOT_ONLINE
    working = select(func.count()).select_from(Device).where(context.visible(Device))
    return {
        "all": total(list(Priority)),
        "offline": total(OFFLINE),
        "never-seen": total({Priority.NEVER_SEEN}),
        "broken": total(bound, "bad"),
        "warned": total(bound, "warn"),
        "online": total(ONLINE),
        "closed": total({Priority.CLOSED}),
        "maintenance": total({Priority.MAINTENANCE}),
        "revoked": total({Priority.REVOKED}),
        "working": context.session.scalars(working.where(state_is("working", context.now))).one(),
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


def _newest_reports(context: RequestContext) -> Iterable[records.NamedReport]:
    query = (
        select(Report, Device.legacy_install_id)
        .join(
            Device,
            (Device.instance_id == Report.instance_id)
            & (Device.organization_id == Report.organization_id),
        )
        .where(context.visible(Report))
        .order_by(Report.position.desc())
        .limit(REPORTS)
        .options(LINE)
    )
    for report, name in context.session.execute(query):
        yield record_of(records.NamedReport, report, report_id=report.id, name=name)
