"""One evaluation of the fleet: update device status, apply the alert rules, store alerts."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement, func, select, text, tuple_
from sqlalchemy.orm import Session

from controlplane.alerts import store
from controlplane.alerts.facts import BoundDevice, Monitoring, facts_of
from controlplane.alerts.rules import Rules, Transition, evaluate
from controlplane.devices.liveness import record_service_outage, update_liveness
from controlplane.devices.locations.locations import LocationKey, schedules, zones
from controlplane.devices.priority import NOT_ONLINE, OFFLINE, ONLINE, Priority
from controlplane.settings import HEARTBEAT_S, Settings
from controlplane.storage.monitoring_tables import AlertWebhook, MonitoringState
from controlplane.storage.statements import in_steps
from controlplane.storage.tables import Device, Report

LOCK: Final = 0x6E6F7469
"""Key of the PostgreSQL advisory lock that one process holds during an evaluation."""


def evaluate_fleet(session: Session, now: datetime, settings: Settings) -> dict[str, set[int]]:
    """Evaluate all devices. Does nothing if another process is evaluating them.

    Returns, for each organization id, the primary keys (``Device.position``) of the devices whose
    position in lists that are sorted by health has changed.
    """
    if not _try_lock(session):
        return {}
    can_detect_offline = _record_evaluation(session, now, settings).can_detect_offline(
        now, settings.offline_window
    )
    # No heartbeat arrives while the service is down. After a restart, no device becomes offline
    # until all devices have had the time to send a heartbeat.
    changed_positions = (
        update_liveness(session, now, settings.offline_window) if can_detect_offline else {}
    )
    _evaluate_locations(session, now, settings, can_detect_offline=can_detect_offline)
    return changed_positions


def _try_lock(session: Session) -> bool:
    if session.get_bind().dialect.name != "postgresql":
        return True  # SQLite has only one writer at a time
    query = text("SELECT pg_try_advisory_xact_lock(:key)")
    return bool(session.execute(query, {"key": LOCK}).scalar())


def _record_evaluation(session: Session, now: datetime, settings: Settings) -> Monitoring:
    """Store the time of this evaluation. Return the times of this evaluation and the last restart.

    The service was down if the previous evaluation is older than a heartbeat interval, and older
    than two evaluation intervals. Then the pause is stored as an outage of the service, and this
    evaluation counts as a restart.
    """
    row = session.get(MonitoringState, 1)
    if row is None:
        session.add(MonitoringState(id=1, started_at=now, checked_at=now, resumed_at=now))
        return Monitoring(now, now)
    pause = timedelta(seconds=max(HEARTBEAT_S, 2 * settings.sweep_interval_s))
    before = Monitoring(row.checked_at, row.resumed_at)
    monitoring = before.check(max(now, row.checked_at), pause)
    if monitoring.resumed_at != before.resumed_at:
        record_service_outage(session, before.checked_at, now)
    row.checked_at, row.resumed_at = monitoring.checked_at, monitoring.resumed_at
    return monitoring


def _evaluate_locations(
    session: Session, now: datetime, settings: Settings, *, can_detect_offline: bool
) -> None:
    states = store.read_states(session)
    devices = _devices(session, states)
    location_keys = sorted(states.keys() | devices.keys())
    by_location, counts = schedules(session, now, location_keys), _counts(session, location_keys)
    clocks = zones(session, location_keys)
    with_webhook = set(session.scalars(select(AlertWebhook.organization_id)))
    rules = Rules(
        timedelta(seconds=settings.alert_fire_after_s),
        timedelta(seconds=settings.alert_resolve_after_s),
    )
    for location in location_keys:
        location_devices, before = devices.get(location, ()), states.get(location, {})
        bound = [each for each in location_devices if each.priority != Priority.REVOKED]
        total, online = counts.get(location, (0, 0))
        facts = facts_of(
            by_location[location],
            [BoundDevice(d.instance_id, d.last_seen_at, d.severity == "bad") for d in bound],
            now,
            settings.offline_window,
            can_detect_offline=can_detect_offline,
            others=total - len(bound),
            others_online=online - sum(each.priority in ONLINE for each in bound),
            unbound=frozenset(key.instance_id for key in before if key.instance_id)
            - {each.instance_id for each in bound},
        )
        after, transitions = evaluate(before, facts, now, rules)
        store.write_states(session, location, before, after)
        for transition in transitions:
            offline = len(facts.offline)
            name, detail = _describe(session, transition, location_devices, offline)
            subject = store.Subject(name or location[1], detail, clocks.get(location))
            has_webhook = settings.notify_url is not None or location[0] in with_webhook
            store.record_transition(
                session, location, transition, subject, now, has_webhook=has_webhook
            )


def _devices(session: Session, states: store.StoredStates) -> dict[LocationKey, list[Device]]:
    """Return the devices to evaluate: offline, broken, or with a stored state."""
    instances = [key.instance_id for keys in states.values() for key in keys if key.instance_id]
    is_broken = (Device.severity == "bad") & (Device.priority != Priority.REVOKED)
    conditions: list[ColumnElement[bool]] = [Device.priority.in_(OFFLINE) | is_broken]
    conditions += [Device.instance_id.in_(step) for step in in_steps(instances)]
    results: dict[int, Device] = {}
    for condition in conditions:
        results |= {
            each.position: each for each in session.scalars(select(Device).where(condition))
        }
    by_location: defaultdict[LocationKey, list[Device]] = defaultdict(list)
    for each in results.values():
        by_location[each.organization_id, each.location_id].append(each)
    return by_location


def _counts(
    session: Session, location_keys: Collection[LocationKey]
) -> dict[LocationKey, tuple[int, int]]:
    """Return, for each location, the number of bound devices and how many of them are online."""
    by_location: dict[LocationKey, tuple[int, int]] = {}
    location = (Device.organization_id, Device.location_id)
    for step in in_steps(sorted(location_keys)):
        query = (
            select(*location, Device.priority, func.count())
            .where(tuple_(*location).in_(step), Device.priority.in_(ONLINE | NOT_ONLINE))
            .group_by(*location, Device.priority)
        )
        for organization_id, location_id, priority, count in session.execute(query):
            total, online = by_location.get((organization_id, location_id), (0, 0))
            online += count if priority in ONLINE else 0
            by_location[organization_id, location_id] = (total + count, online)
    return by_location


def _describe(
    session: Session, transition: Transition, devices: Iterable[Device], offline: int
) -> tuple[str, str]:
    """Return the name of the alert's device and the details of the alert.

    The name is empty for an alert of the location itself.
    """
    instance_id, condition = transition.key
    if instance_id is None:
        return "", "" if transition.is_flapping else f"{offline} devices are offline"
    device = next((each for each in devices if each.instance_id == instance_id), None)
    if device is None:
        return str(instance_id), ""
    return device.legacy_install_id, _headline(session, device) if condition == "broken" else ""


def _headline(session: Session, device: Device) -> str:
    newest = [each for each in (device.network_report, device.application_report) if each]
    query = select(Report.headline).where(Report.position.in_(newest), Report.severity == "bad")
    return next(iter(session.scalars(query)), None) or ""
