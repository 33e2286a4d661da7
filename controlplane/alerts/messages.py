"""The body of an alert notification: fields for programs, and ``text`` for people."""

from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from agent.presentation.connectivity.sentences import time_text
from agent.presentation.connectivity.titles import CAUSE_TITLES
from agent.presentation.humanize import format_seconds
from controlplane.alerts.rule import parse_name
from controlplane.storage.monitoring_tables import Alert

FIRING: Final = {
    ("offline", False): "has been offline",
    ("broken", False): "has reported a fault",
    ("site_outage", False): "has had an outage",
    ("finding", False): "has had the finding {argument}",
    ("incident", False): "has had an incident: {title}",
    ("version_older_than", False): "has run an old version",
    ("no_report_for", False): "has sent no reports",
    ("offline", True): "has gone offline and online repeatedly",
    ("broken", True): "has reported a fault repeatedly",
    ("site_outage", True): "has had repeated outages",
    ("finding", True): "has had the finding {argument} repeatedly",
    ("incident", True): "has had repeated incidents: {title}",
    ("version_older_than", True): "has changed to an old version repeatedly",
    ("no_report_for", True): "has stopped sending reports repeatedly",
}
"""The predicate of the sentence about an alert that fires. `text_of` adds "since" and a time.

The key is the condition, and whether the alert is about its flapping.
"""
RESOLVED: Final = {
    ("offline", False): "is online again",
    ("broken", False): "no longer reports a fault",
    ("site_outage", False): "is back from an outage",
    ("finding", False): "no longer has the finding {argument}",
    ("incident", False): "no longer has the incident: {title}",
    ("version_older_than", False): "no longer runs an old version",
    ("no_report_for", False): "sends reports again",
    ("broken", True): "no longer reports a fault repeatedly",
}
"""The predicate of the sentence about an alert that resolves. The keys are keys of `FIRING`.

For a flapping alert without a key, the predicate is `STABLE`.
"""
STABLE: Final = "has been stable for an hour"


def body_of(
    alert: Alert,
    name: str,
    zone: str | None,
    origin: str | None,
    *,
    is_resolved: bool,
) -> dict[str, Any]:
    """Return the JSON body that docs/alerts.md describes.

    Args:
        name: name of the device, or id of the location.
        zone: time zone of the location, for ``text``.
        origin: address of the console, for the link to the alert.
    """
    condition, argument = parse_name(alert.condition)
    return {
        "type": "alert.resolved" if is_resolved else "alert.firing",
        "text": text_of(alert, name, zone, is_resolved=is_resolved),
        "alertId": str(alert.id),
        "organizationId": alert.organization_id,
        "locationId": alert.location_id,
        "instanceId": alert.instance or None,
        "name": name,
        "condition": condition,
        "argument": argument,
        "severity": alert.severity,
        "flapping": alert.is_flapping,
        "since": json_time(alert.started_at),
        "until": None if alert.ended_at is None else json_time(alert.ended_at),
        "detail": alert.detail,
        "url": None if origin is None else f"{origin}/#/alerts/{alert.id}",
    }


def text_of(alert: Alert, name: str, zone: str | None, *, is_resolved: bool) -> str:
    """Return one sentence about the alert.

    Times are in the time zone of the location, or in UTC if it has none. They have a date, because
    the sentence can be delivered on a later day.
    """
    condition, argument = parse_name(alert.condition)
    kind = (condition, alert.is_flapping)
    values = {"argument": argument, "title": _title(argument)}
    subject = f"{name} ({alert.location_id})" if alert.instance else alert.location_id
    if not is_resolved or alert.ended_at is None:
        detail = f": {alert.detail}" if alert.detail else ""
        problem = FIRING[kind].format(**values)
        return f"{subject} {problem} since {_local_time(alert.started_at, zone)}{detail}"
    duration = format_seconds(max(0, int((alert.ended_at - alert.started_at).total_seconds())))
    outcome = STABLE if alert.is_flapping and kind not in RESOLVED else RESOLVED[kind]
    return f"{subject} {outcome.format(**values)}, after {duration}"


def _title(argument: str) -> str:
    return next((title.label for cause, title in CAUSE_TITLES.items() if cause == argument), "")


def _local_time(timestamp: datetime, zone: str | None) -> str:
    local = timestamp.astimezone(ZoneInfo(zone) if zone else UTC)
    return time_text(local) + ("" if zone else " UTC")


def json_time(timestamp: datetime) -> str:
    """Return a time in UTC as RFC 3339, to the second."""
    return timestamp.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
