"""What a console begins with: how many devices are in which state, and the newest reports."""

from collections.abc import Iterable
from typing import Final

from sqlalchemy import func, select

from controlplane.remote_control.context import RequestContext
from controlplane.remote_control.overview.listing import LINE, line_of, state_is, visible
from controlplane.remote_control.overview.priority import HEARD, SILENT, Priority
from controlplane.remote_control.overview.records import (
    Count,
    NamedReport,
    SummaryReply,
    SummaryRequest,
)
from controlplane.storage.tables import Device, Report

REPORTS: Final = 12
VALUES_MAX: Final = 500
"""Versions or locations that are listed; a filter may name others."""


def summary(context: RequestContext, _body: SummaryRequest) -> SummaryReply:
    return SummaryReply(
        states=_states(context),
        versions=_counts(context, Device.app_version),
        platforms=_counts(context, Device.platform),
        locations=_counts(context, Device.location_id),
        reports=tuple(_newest_reports(context)),
        can_write=context.caller.can_write,
    )


def _states(context: RequestContext) -> dict[str, int]:
    query = (
        select(Device.priority, Device.tone, func.count())
        .where(visible(context))
        .group_by(Device.priority, Device.tone)
    )
    found = [(p, t, n) for p, t, n in context.session.execute(query)]

    def total(priorities: Iterable[int], tone: str | None = None) -> int:
        wanted = frozenset(priorities)
        return sum(n for p, t, n in found if p in wanted and (tone is None or tone == t))

    bound = HEARD | SILENT
    working = select(func.count()).select_from(Device).where(visible(context))
    return {
        "all": total(Priority),
        "offline": total(SILENT),
        "never-seen": total({Priority.NEVER_SEEN}),
        "broken": total(bound, "bad"),
        "warned": total(bound, "warn"),
        "online": total(HEARD),
        "revoked": total({Priority.REVOKED}),
        "working": context.session.scalars(working.where(state_is("working", context.now))).one(),
    }


def _counts(context: RequestContext, column: object) -> tuple[Count, ...]:
    query = (
        select(column, func.count())  # type: ignore[call-overload]
        .where(visible(context), Device.priority != Priority.REVOKED)
        .group_by(column)
        .order_by(func.count().desc(), column)
        .limit(VALUES_MAX)
    )
    return tuple(Count(value=value, count=n) for value, n in context.session.execute(query))


def _newest_reports(context: RequestContext) -> Iterable[NamedReport]:
    query = (
        select(Report, Device.legacy_install_id)
        .join(
            Device,
            (Device.instance_id == Report.instance_id)
            & (Device.organization_id == Report.organization_id),
        )
        .where(Report.organization_id == context.caller.organization_id)
        .order_by(Report.position.desc())
        .limit(REPORTS)
        .options(LINE)
    )
    if context.caller.locations:
        query = query.where(Report.location_id.in_(context.caller.locations))
    for report, name in context.session.execute(query):
        yield NamedReport(**line_of(report).model_dump(), name=name, location_id=report.location_id)
