"""Evaluates the fleet: updates the status of devices, applies the alert rules, stores alerts.

`facts_of` returns the facts about a location, for the alert rules.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final
from uuid import UUID

from sqlalchemy import ColumnElement, func, select, text, tuple_
from sqlalchemy.orm import Session

from controlplane.alerts import store
from controlplane.alerts.conditions import ActiveDevices, active_devices, describe, name_of_subject
from controlplane.alerts.notifications import Notifier
from controlplane.alerts.rule import Rule, rules_at
from controlplane.alerts.rules import Facts, Rules, evaluate
from controlplane.devices.liveness import record_service_outage, update_liveness
from controlplane.devices.locations.locations import LocationKey, Schedules, schedules, zones
from controlplane.devices.locations.status import Schedule, status_of
from controlplane.devices.priority import NOT_ONLINE, OFFLINE, ONLINE, Priority
from controlplane.settings import HEARTBEAT_S, Settings
from controlplane.storage.monitoring_tables import MonitoringState
from controlplane.storage.statements import in_steps
from controlplane.storage.tables import Device

NO_CONDITIONS: Final[Mapping[str, frozenset[UUID]]] = MappingProxyType({})
LOCK: Final = 0x6E6F7469
"""Key of the PostgreSQL advisory lock that one process holds during an evaluation. The key is
"noti" as ASCII bytes.
"""


@dataclass(frozen=True, slots=True)
class BoundDevice:
    """A device that has a binding with the location."""

    instance_id: UUID
    last_seen_at: datetime
    is_broken: bool


@dataclass(frozen=True, slots=True)
class Monitoring:
    """The times of the evaluations.

    Attributes:
        checked_at: when devices were last evaluated.
        resumed_at: when evaluations started again after the last pause of the service or its host.
    """

    checked_at: datetime
    resumed_at: datetime

    def after_evaluation(self, now: datetime, pause: timedelta) -> "Monitoring":
        """Return the times after an evaluation at ``now``.

        ``now`` is the new ``resumed_at`` if the previous evaluation was longer ago than ``pause``.
        """
        return Monitoring(now, now if now - self.checked_at > pause else self.resumed_at)

    def can_detect_offline(self, now: datetime, window: timedelta) -> bool:
        """Return whether each device has had the time to send a heartbeat since the last pause."""
        return now - self.resumed_at > window


def facts_of(
    schedule: Schedule,
    bound: Iterable[BoundDevice],
    now: datetime,
    window: timedelta,
    *,
    can_detect_offline: bool = True,
    other_count: int = 0,
    other_online_count: int = 0,
    unbound: frozenset[UUID] = frozenset(),
    active: Mapping[str, frozenset[UUID]] = NO_CONDITIONS,
) -> Facts:
    """Return the facts about a location.

    Args:
        bound: the bound devices that the evaluation reads: those that are offline, broken or in a
            maintenance window of their own, and those for which a condition is active or
            has a stored state.
        window: longest time between two heartbeats of a device that is online.
        can_detect_offline: see `Facts`.
        other_count: number of the location's bound devices that are not in ``bound``.
        other_online_count: how many of these devices are online.
        unbound: see `Facts`.
        active: devices for which conditions other than ``offline`` and ``broken`` are active, by
            the name of the rule.
    """
    device_count, online_count = other_count, other_online_count
    # The schedule returns None among the devices in maintenance if the whole location is in
    # maintenance. Then no device is counted.
    if None in schedule.in_maintenance(now):
        device_count = online_count = 0
    offline: dict[UUID, datetime] = {}
    not_online, broken, in_maintenance = set(), set(), set()
    for each in bound:
        status = status_of(schedule, each.instance_id, each.last_seen_at, now, window)
        is_in_maintenance = status.until is not None
        device_count += not is_in_maintenance
        online_count += status.state == "online" and not is_in_maintenance
        if status.state != "online":
            not_online.add(each.instance_id)
        if status.since is not None:
            offline[each.instance_id] = status.since
        if each.is_broken:
            broken.add(each.instance_id)
        if is_in_maintenance:
            in_maintenance.add(each.instance_id)
    return Facts(
        device_count=device_count,
        online_count=online_count,
        offline=offline,
        not_online=frozenset(not_online),
        broken=frozenset(broken),
        active=active,
        in_maintenance=frozenset(in_maintenance),
        unbound=unbound,
        can_detect_offline=can_detect_offline,
    )


def evaluate_fleet(session: Session, now: datetime, settings: Settings) -> dict[str, set[int]]:
    """Evaluate all devices. Does nothing if another process is evaluating them.

    Returns, for each organization id, the primary keys (``Device.position``) of the devices whose
    priority has changed.
    """
    if not _try_lock(session):
        return {}
    can_detect_offline = _record_evaluation(session, now, settings).can_detect_offline(
        now, settings.offline_window
    )
    location_schedules = schedules(session, now)
    changed_devices: dict[str, set[int]] = {}
    # No heartbeat arrives while the service is down. After a restart, no device becomes offline
    # until all devices have had the time to send a heartbeat.
    if can_detect_offline:
        changed_devices = update_liveness(session, location_schedules, now, settings.offline_window)
    _evaluate_locations(
        session, location_schedules, now, settings, can_detect_offline=can_detect_offline
    )
    return changed_devices


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
    monitoring = before.after_evaluation(max(now, row.checked_at), pause)
    if monitoring.resumed_at != before.resumed_at:
        record_service_outage(session, before.checked_at, now)
    row.checked_at, row.resumed_at = monitoring.checked_at, monitoring.resumed_at
    return monitoring


def _evaluate_locations(
    session: Session,
    location_schedules: Schedules,
    now: datetime,
    settings: Settings,
    *,
    can_detect_offline: bool,
) -> None:
    states, stored_rules = store.read_states(session), store.read_rules(session)
    active = active_devices(session, stored_rules, now)
    in_maintenance = {
        each for schedule in location_schedules.values() for each in schedule.in_maintenance(now)
    }
    devices = _devices(session, states, in_maintenance, set().union(*active.values()))
    location_keys = sorted(states.keys() | devices.keys())
    counts = _counts(session, location_keys)
    time_zones, silences = zones(session, location_keys), store.read_silences(session, now)
    notifier = Notifier(session, settings, now)
    for location_key in location_keys:
        organization_id, location_id = location_key
        location_devices, before = devices.get(location_key, ()), states.get(location_key, {})
        rules = Rules(
            timedelta(seconds=settings.alert_fire_after_s),
            timedelta(seconds=settings.alert_resolve_after_s),
            by_name=rules_at(stored_rules.get(organization_id, ()), location_id),
        )
        bound = [each for each in location_devices if each.priority != Priority.REVOKED]
        total, online = counts.get(location_key, (0, 0))
        facts = facts_of(
            location_schedules[location_key],
            [BoundDevice(d.instance_id, d.last_seen_at, d.severity == "bad") for d in bound],
            now,
            settings.offline_window,
            can_detect_offline=can_detect_offline,
            other_count=total - len(bound),
            other_online_count=online - sum(each.priority in ONLINE for each in bound),
            unbound=frozenset(key.instance_id for key in before if key.instance_id)
            - {each.instance_id for each in bound},
            active=_active_at(organization_id, bound, rules.by_name, active),
        )
        after, transitions = evaluate(before, facts, now, rules)
        store.write_states(session, location_key, before, after)
        for transition in transitions:
            rule = rules.by_name.get(transition.key.condition)
            name, detail = describe(session, transition, rule, location_devices, len(facts.offline))
            alert = store.record_transition(
                session, location_key, transition, rule=rule, detail=detail, now=now
            )
            if not transition.is_resolved:
                alert.is_muted = store.is_silenced(alert, silences)
            notifier.notify(
                alert,
                name or location_id,
                time_zones.get(location_key),
                is_resolved=transition.is_resolved,
            )
    _notify_unmuted(session, notifier, silences)


def _active_at(
    organization_id: str, bound: Iterable[Device], rules: Mapping[str, Rule], active: ActiveDevices
) -> dict[str, frozenset[UUID]]:
    """Return, by the name of a rule, the bound devices for which its condition is active."""
    return {
        name: frozenset(each.instance_id for each in bound if each.position in positions)
        for name, rule in rules.items()
        if (positions := active.get((organization_id, rule)))
    }


def _notify_unmuted(session: Session, notifier: Notifier, silences: store.Silences) -> None:
    """Add notifications about the alerts that are still firing after the end of their silence."""
    alerts = store.alerts_to_unmute(session, silences)
    time_zones = zones(session, {(each.organization_id, each.location_id) for each in alerts})
    for alert in alerts:
        alert.is_muted = False
        zone = time_zones.get((alert.organization_id, alert.location_id))
        notifier.notify(alert, name_of_subject(session, alert), zone, is_resolved=False)


def _devices(
    session: Session,
    states: store.StoredStates,
    in_maintenance: Iterable[UUID | None],
    positions: Iterable[int],
) -> dict[LocationKey, list[Device]]:
    """Return the devices to evaluate: offline devices, broken devices, devices with a stored state,
    and the devices that ``in_maintenance`` and ``positions`` select.

    Args:
        in_maintenance: ids of devices in maintenance. None, which stands for a location, is
            ignored.
        positions: row keys (``Device.position``) of devices with an active condition.
    """
    stored = {key.instance_id for keys in states.values() for key in keys}
    instances = [each for each in stored.union(in_maintenance) if each]
    is_broken = (Device.severity == "bad") & (Device.priority != Priority.REVOKED)
    conditions: list[ColumnElement[bool]] = [Device.priority.in_(OFFLINE) | is_broken]
    conditions += [Device.instance_id.in_(step) for step in in_steps(instances)]
    conditions += [
        Device.position.in_(step) & (Device.priority != Priority.REVOKED)
        for step in in_steps(sorted(positions))
    ]
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
