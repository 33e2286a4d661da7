"""The name of an alert's subject and the details of an alert, for users."""

from collections.abc import Iterable
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.alerts.rule import Rule
from controlplane.alerts.rules import Transition
from controlplane.storage.monitoring_tables import Alert
from controlplane.storage.report_tables import DeviceFinding
from controlplane.storage.tables import Device, Report


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
        newest = [each for each in (device.network_report, device.application_report) if each]
        query = select(Report.headline).where(Report.position.in_(newest), Report.severity == "bad")
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
