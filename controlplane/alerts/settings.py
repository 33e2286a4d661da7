"""Reads the stored rules and silences of organizations."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from controlplane.alerts.rule import Condition, Rule, Severity, parse_name
from controlplane.storage.monitoring_tables import Alert, AlertRule, AlertSilence


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


@dataclass(frozen=True, slots=True)
class Silence:
    """A period without notifications about matching alerts. An empty matcher matches all."""

    since: datetime
    until: datetime
    location_id: str = ""
    instance: str = ""
    rule: str = ""

    def matches(self, location_id: str, instance: str, rule: str, now: datetime) -> bool:
        return (
            self.since <= now < self.until
            and self.location_id in {"", location_id}
            and self.instance in {"", instance}
            and self.rule in {"", rule}
        )


Silences = dict[str, list[Silence]]
"""Silences by organization id."""


def read_silences(session: Session, now: datetime) -> Silences:
    """Return the silences that are active now."""
    results: defaultdict[str, list[Silence]] = defaultdict(list)
    active = (AlertSilence.since <= now) & (AlertSilence.until > now)
    for row in session.scalars(select(AlertSilence).where(active)):
        silence = Silence(row.since, row.until, row.location_id, row.instance, row.rule)
        results[row.organization_id].append(silence)
    return results


def is_silenced(alert: Alert, silences: Silences, now: datetime) -> bool:
    candidates: Collection[Silence] = silences.get(alert.organization_id, ())
    return any(
        each.matches(alert.location_id, alert.instance, alert.condition, now) for each in candidates
    )


def alerts_to_unmute(session: Session, silences: Silences, now: datetime) -> Sequence[Alert]:
    """Return the firing alerts that are marked as muted and that no active silence matches."""
    muted = select(Alert).where(Alert.is_muted, Alert.resolved_at.is_(None))
    rows = session.scalars(muted.order_by(Alert.position))
    return [row for row in rows if not is_silenced(row, silences, now)]
