"""``venue-control alerts``: lists and acknowledges firing alerts, adds and ends silences."""

import argparse
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from agent.wire.device_operations import EmptyRequest
from controlplane.alerts.operations.messages import (
    AcknowledgeRequest,
    AlertRecord,
    SilenceEndRequest,
    SilenceRecord,
    SilenceRequest,
    SilencesReply,
)
from controlplane.cli.connection import client_of, find_device_id
from controlplane.cli.devices import fleet
from controlplane.cli.matching import only_match
from controlplane.cli.screen.cells import Columns, Styled, age, utc_text
from controlplane.cli.screen.output import print_json_or_csv, print_records
from controlplane.client.operations import OperationsClient

ID_LENGTH: Final = 8
"""Number of characters of an id in a table. The commands take the first characters of an id."""
STYLES: Final = {"info": "dim", "warning": "yellow", "critical": "red"}


def _describe_state(alert: AlertRecord) -> str:
    states = {
        "firing": True,
        "flapping": alert.flapping,
        "silenced": alert.silenced,
        "acknowledged": alert.acknowledged_at is not None,
    }
    return ", ".join(state for state, applies in states.items() if applies)


COLUMNS: Final[Columns[AlertRecord]] = {
    "id": lambda alert: str(alert.id)[:ID_LENGTH],
    "rule": lambda alert: alert.rule,
    "severity": lambda alert: Styled(alert.severity, STYLES[alert.severity]),
    "name": lambda alert: alert.name,
    "since": lambda alert: age(alert.started_at),
    "state": _describe_state,
    "detail": lambda alert: alert.detail,
}


SILENCE_COLUMNS: Final[Columns[SilenceRecord]] = {
    "id": lambda record: str(record.id)[:ID_LENGTH],
    "since": lambda record: utc_text(record.since),
    "until": lambda record: utc_text(record.until),
    "location": lambda record: record.location_id or "",
    "device": lambda record: str(record.instance_id or ""),
    "rule": lambda record: record.rule or "",
    "by": lambda record: record.created_by,
    "reason": lambda record: record.reason,
}


def list_all(options: argparse.Namespace) -> None:
    with client_of(options) as client:
        alerts = fleet.firing_alerts(client, options.location)
    if not print_json_or_csv(options, alerts):
        print_records(alerts, COLUMNS, "No alerts are firing.")


def acknowledge(options: argparse.Namespace) -> None:
    with client_of(options) as client:
        body = AcknowledgeRequest(alert_id=_alert_id(client, options.id))
        alert = client.post(fleet.ACKNOWLEDGE_ALERT, body, AlertRecord)
    print(f"{alert.rule} of {alert.name}: acknowledged by {alert.acknowledged_by}")


def silence(options: argparse.Namespace) -> None:
    with client_of(options) as client:
        body = SilenceRequest(
            location_id=options.location,
            instance_id=None if options.device is None else find_device_id(client, options.device),
            rule=options.rule,
            since=None,
            until=options.until,
            reason=options.reason,
        )
        # A repeated call would add a second silence.
        record = client.post(fleet.ADD_SILENCE, body, SilenceRecord, is_repeatable=False)
    until = utc_text(record.until)
    print(f"silence {record.id}: {_matchers(record)}, until {until}")


def list_silences(options: argparse.Namespace) -> None:
    with client_of(options) as client:
        silences = _silences(client)
    if not print_json_or_csv(options, silences):
        print_records(silences, SILENCE_COLUMNS, "There are no silences.")


def end_silence(options: argparse.Namespace) -> None:
    with client_of(options) as client:
        body = SilenceEndRequest(silence_id=_silence_id(client, options.id))
        record = client.post(fleet.END_SILENCE, body, SilenceRecord)
    print(f"silence {record.id}: {_matchers(record)}, ended")


def _matchers(silence: SilenceRecord) -> str:
    matchers = (
        f"location {silence.location_id}" if silence.location_id else "every location",
        f"device {silence.instance_id}" if silence.instance_id else "every device",
        f"rule {silence.rule}" if silence.rule else "every rule",
    )
    return ", ".join(matchers)


def _silences(client: OperationsClient) -> list[SilenceRecord]:
    return list(client.post(fleet.SILENCES, EmptyRequest(), SilencesReply).silences)


def _alert_id(client: OperationsClient, text: str) -> UUID:
    ids = (alert.id for alert in fleet.firing_alerts(client))
    return _whole_id(text, ids, "alert", "`venue-control alerts list` lists the ids.")


def _silence_id(client: OperationsClient, text: str) -> UUID:
    ids = (record.id for record in _silences(client))
    return _whole_id(text, ids, "silence", "`venue-control alerts silences` lists the ids.")


def _whole_id(text: str, ids: Iterable[UUID], noun: str, hint: str) -> UUID:
    """Return the id that starts with ``text``. Raises CommandError."""
    try:
        return UUID(text)
    except ValueError:
        start = text.casefold()
        matches = {full: full for full in ids if str(full).startswith(start)}
        return only_match(text, matches, noun, hint)
