"""Selects the devices for which the conditions of stored rules are active.

For the conditions ``offline``, ``broken`` and ``site_outage``, see `controlplane.alerts.facts`.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Select, exists, select
from sqlalchemy.orm import Session

from controlplane.alerts.rule import Condition, Rule, parse_version
from controlplane.storage.report_tables import DeviceFinding, DeviceIncident
from controlplane.storage.statements import in_steps
from controlplane.storage.tables import Device, Report

ActiveDevices = dict[tuple[str, Rule], frozenset[int]]
"""The row keys of devices (``Device.position``), by organization id and rule."""
Reader = Callable[[Session, str, Rule, datetime], Iterable[int]]
"""Takes a database session, an organization id, a rule and the present time.

Returns the row keys of the organization's devices for which the condition of the rule is active.
"""


def active_devices(
    session: Session, rules: Mapping[str, Iterable[Rule]], now: datetime
) -> ActiveDevices:
    """Return the devices for which the condition of a rule is active.

    Args:
        rules: the rules that organizations have set, by organization id.
    """
    return {
        (organization_id, rule): frozenset(
            READERS[rule.condition](session, organization_id, rule, now)
        )
        for organization_id, organization_rules in rules.items()
        for rule in organization_rules
        if rule.is_enabled and rule.condition in READERS
    }


def _with_finding(
    session: Session, organization_id: str, rule: Rule, _now: datetime
) -> Iterable[int]:
    query = select(DeviceFinding.device).where(
        DeviceFinding.organization_id == organization_id, DeviceFinding.rule == rule.argument
    )
    if rule.location_id:
        query = query.where(DeviceFinding.location_id == rule.location_id)
    return session.scalars(query)


def _with_incident(
    session: Session, organization_id: str, rule: Rule, _now: datetime
) -> Iterable[int]:
    query = select(DeviceIncident.device).where(
        DeviceIncident.organization_id == organization_id,
        DeviceIncident.cause == rule.argument,
        DeviceIncident.ended_s.is_(None),
    )
    if rule.location_id:
        query = query.where(DeviceIncident.location_id == rule.location_id)
    return session.scalars(query)


def _with_older_version(
    session: Session, organization_id: str, rule: Rule, _now: datetime
) -> Iterable[int]:
    bound = _select_bound(organization_id, rule)
    minimum = parse_version(rule.argument)
    versions = session.scalars(bound.with_only_columns(Device.app_version).distinct())
    # A version that does not begin with a number is parsed as (). It does not count as older.
    old = [each for each in versions if each and () < parse_version(each) < minimum]
    for step in in_steps(old):
        yield from session.scalars(bound.where(Device.app_version.in_(step)))


def _without_report(
    session: Session, organization_id: str, rule: Rule, now: datetime
) -> Iterable[int]:
    since = now - timedelta(hours=int(rule.argument))
    has_report = exists().where(
        Report.position.in_((Device.network_report, Device.application_report)),
        Report.created_at > since,
    )
    query = _select_bound(organization_id, rule).where(Device.enrolled_at <= since, ~has_report)
    return session.scalars(query)


def _select_bound(organization_id: str, rule: Rule) -> Select[int]:
    """Return the query for the devices in the scope of a rule, without revoked devices."""
    query = select(Device.position).where(
        Device.organization_id == organization_id, Device.revoked_at.is_(None)
    )
    return query.where(Device.location_id == rule.location_id) if rule.location_id else query


READERS: Final[Mapping[Condition, Reader]] = {
    "finding": _with_finding,
    "incident": _with_incident,
    "version_older_than": _with_older_version,
    "no_report_for": _without_report,
}
