"""Reads the stored rules and silences of organizations."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
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
