"""``venue-control alerts``: lists and acknowledges firing alerts, and silences alerts."""

import argparse
from datetime import UTC
from typing import Final
from uuid import UUID

from controlplane.alerts.operations.messages import (
    AcknowledgeRequest,
    AlertRecord,
    SilenceRecord,
    SilenceRequest,
)
from controlplane.cli.connection import client_of, device_of
from controlplane.cli.devices import fleet
from controlplane.cli.matching import only_match
from controlplane.cli.screen.cells import Columns, Styled, age
from controlplane.cli.screen.output import print_as, print_records
from controlplane.client.errors import CommandError
from controlplane.client.operations import OperationsClient
from controlplane.client.refusals import NotFoundError

ID_LENGTH: Final = 8
"""Number of characters of an id in the table. `alerts acknowledge` takes the first characters."""
STYLES: Final = {"info": "dim", "warning": "yellow", "critical": "red"}


def _state(alert: AlertRecord) -> str:
    words = {
        "flapping": alert.flapping,
        "silenced": alert.silenced,
        "acknowledged": alert.acknowledged_at is not None,
    }
    return ", ".join(["firing", *(word for word, applies in words.items() if applies)])


COLUMNS: Final[Columns[AlertRecord]] = {
    "id": lambda alert: str(alert.id)[:ID_LENGTH],
    "rule": lambda alert: alert.rule,
    "severity": lambda alert: Styled(alert.severity, STYLES[alert.severity]),
    "name": lambda alert: alert.name,
    "since": lambda alert: age(alert.started_at),
    "state": _state,
    "detail": lambda alert: alert.detail,
}


def list_all(options: argparse.Namespace) -> int:
    with client_of(options) as client:
        alerts = _firing(client, options.location)
    if not print_as(options, alerts):
        print_records(alerts, COLUMNS, "No alerts are firing.")
    return 0


def acknowledge(options: argparse.Namespace) -> int:
    with client_of(options) as client:
        body = AcknowledgeRequest(alert_id=_alert_id(client, options.id))
        alert = client.post(fleet.ACKNOWLEDGE_ALERT, body, AlertRecord)
    print(f"{alert.rule} of {alert.name}: acknowledged by {alert.acknowledged_by}")
    return 0


def silence(options: argparse.Namespace) -> int:
    with client_of(options) as client:
        body = SilenceRequest(
            location_id=options.location,
            instance_id=None if options.device is None else device_of(client, options.device),
            rule=options.rule,
            since=None,
            until=options.until,
            reason=options.reason,
        )
        # A repeated call would add a second silence.
        made = client.post(fleet.ADD_SILENCE, body, SilenceRecord, is_repeatable=False)
    matchers = (
        f"location {made.location_id}" if made.location_id else "every location",
        f"device {made.instance_id}" if made.instance_id else "every device",
        f"rule {made.rule}" if made.rule else "every rule",
    )
    until = f"{made.until.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    print(f"silence {made.id}: {', '.join(matchers)}, until {until}")
    return 0


def _firing(client: OperationsClient, location: str | None = None) -> list[AlertRecord]:
    try:
        return fleet.firing_alerts(client, location)
    except NotFoundError as error:
        raise CommandError("this service has no list of alerts") from error


def _alert_id(client: OperationsClient, text: str) -> UUID:
    """Return the id of an alert, given the id or its first characters. Raises CommandError."""
    try:
        return UUID(text)
    except ValueError:
        start = text.casefold()
        matches = {
            alert.id: alert.id for alert in _firing(client) if str(alert.id).startswith(start)
        }
        return only_match(text, matches, "alert", "`venue-control alerts list` lists the ids.")
