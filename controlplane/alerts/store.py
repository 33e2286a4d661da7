"""Stores the states of conditions, the alerts and their notifications in one transaction."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.alerts.messages import body_of
from controlplane.alerts.rules import Condition, ConditionState, Key, Transition
from controlplane.devices.locations.locations import LocationKey
from controlplane.storage.monitoring_tables import Alert, AlertNotification, AlertState

StoredStates = dict[LocationKey, dict[Key, ConditionState]]
STATE_COLUMNS = frozenset(each.name for each in fields(ConditionState)) - {"changes"}
"""The fields that are stored unchanged. ``changes`` is stored as a list of ISO 8601 texts."""


def read_states(session: Session) -> StoredStates:
    """Return the states of all conditions, by location."""
    results: StoredStates = {}
    for row in session.scalars(select(AlertState)):
        condition: Condition = row.condition  # type: ignore[assignment]
        key = Key(UUID(row.instance) if row.instance else None, condition)
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


@dataclass(frozen=True, slots=True)
class Subject:
    """What an alert is about.

    Attributes:
        name: name of the device, or id of the location.
        detail: further text for users.
        zone: time zone of the location.
    """

    name: str
    detail: str
    zone: str | None


def record_transition(
    session: Session,
    location_key: LocationKey,
    transition: Transition,
    subject: Subject,
    now: datetime,
    *,
    has_webhook: bool,
) -> None:
    """Store that an alert fires or resolves, and its notification if there is a webhook."""
    if transition.is_resolved:
        alert = open_alert(
            session, location_key, transition.key, is_flapping=transition.is_flapping
        )
        if alert is None:
            raise LookupError(f"no alert is open for {transition.key} at {location_key}")
        alert.ended_at, alert.resolved_at = transition.at, now
    else:
        alert = Alert(
            id=uuid.uuid4(),
            organization_id=location_key[0],
            location_id=location_key[1],
            instance=_instance(transition.key),
            condition=transition.key.condition,
            is_flapping=transition.is_flapping,
            started_at=transition.at,
            fired_at=now,
            detail=subject.detail,
        )
    session.add(alert)
    if not has_webhook:
        return
    body = body_of(alert, subject.name, subject.zone, is_resolved=transition.is_resolved)
    session.add(
        AlertNotification(
            id=f"msg_{uuid.uuid4().hex}",
            alert_id=alert.id,
            is_resolved=transition.is_resolved,
            body=json.dumps(body),
            status="pending",
            attempts=0,
            due_at=now,
            created_at=now,
            updated_at=now,
        )
    )


def open_alert(
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
