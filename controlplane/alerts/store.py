"""Reads the stored rules and silences, and stores alerts and the states of conditions."""

import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import cast
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.alerts.rule import Condition, Rule, Severity, parse_name
from controlplane.alerts.rules import ConditionState, Key, Transition
from controlplane.devices.locations.locations import LocationKey
from controlplane.storage.monitoring_tables import Alert, AlertRule, AlertSilence, AlertState


def read_rules(session: Session) -> dict[str, list[Rule]]:
    """Return the rules that organizations have set, by organization id."""
    results: defaultdict[str, list[Rule]] = defaultdict(list)
    for row in session.scalars(select(AlertRule)):
        results[row.organization_id].append(rule_of(row))
    return results


def rule_of(row: AlertRule) -> Rule:
    condition, _ = parse_name(row.name)
    return Rule(
        cast("Condition", condition),
        row.argument,
        cast("Severity", row.severity),
        None if row.for_minutes is None else timedelta(minutes=row.for_minutes),
        row.is_enabled,
        row.location_id,
    )


Silences = Mapping[str, Collection[AlertSilence]]
"""The active silences by organization id."""


def read_silences(session: Session, now: datetime) -> Silences:
    """Return the silences that are active now."""
    results: defaultdict[str, list[AlertSilence]] = defaultdict(list)
    active = (AlertSilence.since <= now) & (AlertSilence.until > now)
    for row in session.scalars(select(AlertSilence).where(active)):
        results[row.organization_id].append(row)
    return results


def is_silenced(alert: Alert, silences: Silences) -> bool:
    """Return whether an active silence matches the alert. An empty matcher matches all."""
    return any(
        each.location_id in {"", alert.location_id}
        and each.instance in {"", alert.instance}
        and each.rule in {"", alert.condition}
        for each in silences.get(alert.organization_id, ())
    )


def alerts_to_unmute(session: Session, silences: Silences) -> Sequence[Alert]:
    """Return the firing alerts that are marked as muted and that no active silence matches."""
    muted = select(Alert).where(Alert.is_muted, Alert.resolved_at.is_(None))
    rows = session.scalars(muted.order_by(Alert.position))
    return [row for row in rows if not is_silenced(row, silences)]


StoredStates = dict[LocationKey, dict[Key, ConditionState]]
STATE_COLUMNS = frozenset(each.name for each in fields(ConditionState)) - {"changes"}
"""The fields that are stored unchanged. ``changes`` is stored as a list of ISO 8601 texts."""


def read_states(session: Session) -> StoredStates:
    """Return the states of all conditions, by location."""
    results: StoredStates = {}
    for row in session.scalars(select(AlertState)):
        key = Key(UUID(row.instance) if row.instance else None, row.condition)
        values = {name: getattr(row, name) for name in STATE_COLUMNS}
        changes = tuple(datetime.fromisoformat(each) for each in row.changes)
        states = results.setdefault((row.organization_id, row.location_id), {})
        states[key] = ConditionState(**values, changes=changes)
    return results


def write_states(
    session: Session,
    location_key: LocationKey,
    before: Mapping[Key, ConditionState],
    after: Mapping[Key, ConditionState],
) -> None:
    """Store the changed states of a location, and delete the states that ``after`` lacks."""
    for key in before.keys() - after.keys():
        row = session.get(AlertState, (*location_key, _instance(key), key.condition))
        if row is not None:
            session.delete(row)
    for key, state in after.items():
        if before.get(key) == state:
            continue
        row = AlertState(
            organization_id=location_key[0],
            location_id=location_key[1],
            instance=_instance(key),
            condition=key.condition,
            changes=[each.isoformat() for each in state.changes],
            **{name: getattr(state, name) for name in STATE_COLUMNS},
        )
        session.merge(row)


def record_transition(
    session: Session,
    location_key: LocationKey,
    transition: Transition,
    *,
    rule: Rule | None,
    detail: str,
    now: datetime,
) -> Alert:
    """Store that an alert fires or resolves, and return the alert.

    Args:
        rule: None only for an alert that resolves because its rule is no longer enabled.
        detail: further text for users about an alert that fires.
    """
    if transition.is_resolved:
        alert = _find_open_alert(
            session, location_key, transition.key, is_flapping=transition.is_flapping
        )
        if alert is None:
            raise LookupError(f"no alert is open for {transition.key} at {location_key}")
        alert.ended_at, alert.resolved_at = transition.at, now
        return alert
    if rule is None:
        raise LookupError(f"there is no rule for {transition.key} at {location_key}")
    alert = Alert(
        id=uuid.uuid4(),
        organization_id=location_key[0],
        location_id=location_key[1],
        instance=_instance(transition.key),
        condition=transition.key.condition,
        is_flapping=transition.is_flapping,
        started_at=transition.at,
        fired_at=now,
        detail=detail,
        severity=rule.severity,
        is_muted=False,
    )
    session.add(alert)
    return alert


def _find_open_alert(
    session: Session, location_key: LocationKey, key: Key, *, is_flapping: bool
) -> Alert | None:
    return session.scalars(
        select(Alert).where(
            Alert.organization_id == location_key[0],
            Alert.location_id == location_key[1],
            Alert.instance == _instance(key),
            Alert.condition == key.condition,
            Alert.is_flapping == is_flapping,
            Alert.resolved_at.is_(None),
        )
    ).first()


def _instance(key: Key) -> str:
    return "" if key.instance_id is None else str(key.instance_id)
