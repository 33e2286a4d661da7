"""Selects the devices for which the conditions of stored rules are active, and describes alerts.

For the conditions ``offline``, ``broken`` and ``site_outage``, see
`controlplane.alerts.evaluation.facts_of`.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Select, exists, select
from sqlalchemy.orm import Session

from controlplane.alerts.rule import Condition, Rule, parse_version
from controlplane.alerts.rules import Transition
from controlplane.storage.monitoring_tables import Alert
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
    query = _in_scope(select(DeviceFinding.device), DeviceFinding, organization_id, rule)
    return session.scalars(query.where(DeviceFinding.rule == rule.argument))


def _with_incident(
    session: Session, organization_id: str, rule: Rule, _now: datetime
) -> Iterable[int]:
    query = _in_scope(select(DeviceIncident.device), DeviceIncident, organization_id, rule)
    return session.scalars(
        query.where(DeviceIncident.cause == rule.argument, DeviceIncident.ended_s.is_(None))
    )


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
    query = _in_scope(select(Device.position), Device, organization_id, rule)
    return query.where(Device.revoked_at.is_(None))


def _in_scope(query: Select[int], table: Any, organization_id: str, rule: Rule) -> Select[int]:
    """Restrict ``query`` to rows of an organization, and of the rule's location if it has one."""
    query = query.where(table.organization_id == organization_id)
    return query.where(table.location_id == rule.location_id) if rule.location_id else query


READERS: Final[Mapping[Condition, Reader]] = {
    "finding": _with_finding,
    "incident": _with_incident,
    "version_older_than": _with_older_version,
    "no_report_for": _without_report,
}


def describe(
    session: Session,
    transition: Transition,
    rule: Rule | None,
    devices: Iterable[Device],
    offline_count: int,
) -> tuple[str, str]:
    """Return the name of the alert's device and the details of the alert.

    The name is empty for an alert of the location itself.

    Args:
        rule: None if the rule is no longer enabled.
        offline_count: number of offline devices of the location.
    """
    instance_id = transition.key.instance_id
    if instance_id is None:
        return "", "" if transition.is_flapping else f"{offline_count} devices are offline"
    device = next((each for each in devices if each.instance_id == instance_id), None)
    if device is None:
        return str(instance_id), ""
    detail = "" if transition.is_resolved or rule is None else _detail(session, device, rule)
    return device.legacy_install_id, detail


def name_of_subject(session: Session, alert: Alert) -> str:
    """Return the name of the alert's device, or the id of its location."""
    if not alert.instance:
        return alert.location_id
    query = select(Device.legacy_install_id).where(
        Device.organization_id == alert.organization_id, Device.instance_id == UUID(alert.instance)
    )
    return session.scalars(query).first() or alert.instance


def _detail(session: Session, device: Device, rule: Rule) -> str:
    if rule.condition == "broken":
        query = select(Report.headline).where(
            Report.position.in_(device.newest_reports), Report.severity == "bad"
        )
    elif rule.condition == "finding":
        query = select(DeviceFinding.sentence).where(
            DeviceFinding.device == device.position, DeviceFinding.rule == rule.argument
        )
    elif rule.condition == "version_older_than":
        return f"version {device.app_version}, older than {rule.argument}"
    elif rule.condition == "no_report_for":
        return f"no report for {rule.argument} h"
    else:
        return ""
    return session.scalars(query).first() or ""
