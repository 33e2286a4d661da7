"""Rows of the database as records of the contract."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy.orm import Session

from agent.wire.codec import validate
from agent.wire.device_operations import Command, EnrollmentRecord
from agent.wire.operator_operations import Device as DeviceRecord
from agent.wire.operator_operations import RemoteRequest, ReportDetail, ReportSummary
from agent.wire.payloads.by_kind import PAYLOADS, ReportPayload
from controlplane.accounts.names import Names, names_of
from controlplane.settings import Settings
from controlplane.storage import tables

PROTOCOL_VERSION: Final = 1


def enrollment_record(device: tables.Device) -> EnrollmentRecord:
    return EnrollmentRecord(
        instance_id=device.instance_id,
        location_id=device.location_id,
        legacy_install_id=device.legacy_install_id,
        app_version=device.app_version,
        capabilities=tuple(device.capabilities),
        binding_id=device.binding_id,
        organization_id=device.organization_id,
    )


def is_online(device: tables.Device, now: datetime, settings: Settings) -> bool:
    """A device is online while it is bound and its last heartbeat is recent."""
    return device.revoked_at is None and now - device.last_seen_at <= settings.online_window


def device_records(
    session: Session, devices: Sequence[tables.Device], now: datetime, settings: Settings
) -> tuple[DeviceRecord, ...]:
    """Return the records in the same order, with the names of where they are."""
    names = names_of(session, ((each.organization_id, each.location_id) for each in devices))
    return tuple(device_record(each, names, now, settings) for each in devices)


def device_record(
    device: tables.Device, names: Names, now: datetime, settings: Settings
) -> DeviceRecord:
    return DeviceRecord(
        instance_id=device.instance_id,
        location_id=device.location_id,
        legacy_install_id=device.legacy_install_id,
        app_version=device.app_version,
        capabilities=tuple(device.capabilities),
        binding_id=device.binding_id,
        organization_id=device.organization_id,
        platform=device.platform,
        user_id=device.user_id,
        revoked_at=device.revoked_at,
        last_seen_at=device.last_seen_at,
        foreground=device.foreground,
        created_at=device.created_at,
        location_name=names.location(device.organization_id, device.location_id),
        organization_name=names.organization(device.organization_id),
        online=is_online(device, now, settings),
    )


def command(request: tables.Request) -> Command:
    return Command(
        version=PROTOCOL_VERSION,
        request_id=request.id,
        binding_id=request.binding_id,
        kind=request.kind,
        expires_at=request.expires_at,
        status=request.status,
    )


def request_record(request: tables.Request) -> RemoteRequest:
    return RemoteRequest(
        id=request.id,
        instance_id=request.instance_id,
        binding_id=request.binding_id,
        organization_id=request.organization_id,
        location_id=request.location_id,
        requested_by_id=request.requested_by_id,
        kind=request.kind,
        status=request.status,
        expires_at=request.expires_at,
        received_at=request.received_at,
        started_at=request.started_at,
        finished_at=request.finished_at,
        created_at=request.created_at,
        updated_at=request.updated_at,
    )


def report_summary(report: tables.Report) -> ReportSummary:
    return ReportSummary(
        report_id=report.id,
        request_id=report.request_id,
        kind=report.kind,
        outcome=report.outcome,
        failure_reason=report.failure_reason,
        organization_id=report.organization_id,
        location_id=report.location_id,
        created_at=report.created_at,
        tracker_status=report.tracker_status,
        tracker_event_id=report.tracker_event_id,
    )


def report_detail(report: tables.Report) -> ReportDetail:
    return ReportDetail(
        id=report.id,
        request_id=report.request_id,
        kind=report.kind,
        outcome=report.outcome,
        failure_reason=report.failure_reason,
        organization_id=report.organization_id,
        location_id=report.location_id,
        created_at=report.created_at,
        tracker_status=report.tracker_status,
        tracker_event_id=report.tracker_event_id,
        instance_id=report.instance_id,
        binding_id=report.binding_id,
        user_id=report.user_id,
        payload=payload_of(report),
        payload_hash=report.payload_hash,
        tracker_attempts=report.tracker_attempts,
        updated_at=report.updated_at,
    )


def payload_of(report: tables.Report) -> ReportPayload | None:
    value = json.loads(report.payload)
    return None if value is None else validate(value, PAYLOADS[report.kind])
