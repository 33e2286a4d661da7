"""Converts rows of the database to records of the contract."""

import json
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final

from sqlalchemy.orm import Session

from agent.wire.codec import validate
from agent.wire.device_operations import Command
from agent.wire.operator_operations import Device as DeviceRecord
from agent.wire.operator_operations import ReportSummary
from agent.wire.payloads.by_kind import PAYLOADS, ReportPayload
from controlplane.accounts.names import names_of
from controlplane.operation.records import record_of
from controlplane.settings import Settings
from controlplane.storage import tables

PROTOCOL_VERSION: Final = 1
EMPTY: Final = "null"
"""The stored value of a report without content."""


def is_online(device: tables.Device, now: datetime, settings: Settings) -> bool:
    """Return whether the device is not revoked and was last seen within the online window."""
    return device.revoked_at is None and now - device.last_seen_at <= settings.online_window


def device_records(
    session: Session, devices: Sequence[tables.Device], now: datetime, settings: Settings
) -> tuple[DeviceRecord, ...]:
    """Return the records in the order of ``devices``, with names of locations and organizations."""
    names = names_of(session, ((device.organization_id, device.location_id) for device in devices))
    return tuple(
        record_of(
            DeviceRecord,
            device,
            location_name=names.location(device.organization_id, device.location_id),
            organization_name=names.organization(device.organization_id),
            online=is_online(device, now, settings),
        )
        for device in devices
    )


def command(request: tables.Request) -> Command:
    return record_of(Command, request, version=PROTOCOL_VERSION, request_id=request.id)


def report_summary(report: tables.Report) -> ReportSummary:
    return record_of(ReportSummary, report, report_id=report.id)


def payload_of(report: tables.Report) -> ReportPayload | None:
    """Return the payload of a report, or None if its stored value is no payload."""
    value = json.loads(report.payload)
    return validate(value, PAYLOADS[report.kind]) if is_payload(value) else None


def has_payload(report: tables.Report) -> bool:
    return is_payload(json.loads(report.payload))


def is_payload(value: Any) -> bool:
    """Return whether a value is a payload: an object with at least one field of a payload.

    The contract permits any value as the report of `submitResult`. A payload that does not fit the
    contract is refused. A value that is not a payload is stored, and the report is shown as one
    without a payload.
    """
    return isinstance(value, dict) and not payload_fields().isdisjoint(value)


@cache
def payload_fields() -> frozenset[str]:
    """Return the names of all fields of the network and the application payload."""
    models = PAYLOADS.values()
    return frozenset(
        field.alias or name for model in models for name, field in model.model_fields.items()
    )
