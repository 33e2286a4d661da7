"""The five operations an operator calls, and the records they list (contract: Resources)."""

from typing import Literal
from uuid import UUID

from agent.wire.base import Count, Exact, Timestamp, Tolerant
from agent.wire.device_operations import EnrollmentRecord
from agent.wire.payloads import ReportPayload
from agent.wire.text import Cursor, NonEmptyText
from agent.wire.vocabulary import (
    FailureReason,
    Kind,
    Outcome,
    Platform,
    RequestStatus,
    TrackerStatus,
)


class Device(EnrollmentRecord):
    """An enrolled device as listings show it."""

    platform: Platform
    user_id: NonEmptyText
    revoked_at: Timestamp | None
    last_seen_at: Timestamp
    foreground: bool
    created_at: Timestamp
    location_name: str | None
    organization_name: str | None
    online: bool


class RemoteRequest(Tolerant):
    id: UUID
    instance_id: UUID
    binding_id: UUID
    organization_id: NonEmptyText
    location_id: NonEmptyText
    requested_by_id: NonEmptyText
    kind: Kind
    status: RequestStatus
    expires_at: Timestamp
    received_at: Timestamp | None
    started_at: Timestamp | None
    finished_at: Timestamp | None
    created_at: Timestamp
    updated_at: Timestamp


class ReportSummary(Tolerant):
    report_id: UUID
    request_id: UUID | None
    kind: Kind
    outcome: Outcome
    failure_reason: FailureReason | None
    organization_id: NonEmptyText
    location_id: NonEmptyText
    created_at: Timestamp
    tracker_status: TrackerStatus
    tracker_event_id: NonEmptyText


class ReportDetail(Tolerant):
    id: UUID
    request_id: UUID | None
    kind: Kind
    outcome: Outcome
    failure_reason: FailureReason | None
    organization_id: NonEmptyText
    location_id: NonEmptyText
    created_at: Timestamp
    tracker_status: TrackerStatus
    tracker_event_id: NonEmptyText
    instance_id: UUID
    binding_id: UUID
    user_id: NonEmptyText
    payload: ReportPayload | None
    payload_hash: NonEmptyText
    tracker_attempts: Count
    updated_at: Timestamp


class CreateRequestRequest(Exact):
    instance_id: UUID
    kind: Kind


class CreateRequestReply(Tolerant):
    version: Literal[1]
    request_id: UUID
    binding_id: UUID
    kind: Kind
    expires_at: Timestamp
    status: Literal["queued"]


class ListDevicesRequest(Exact):
    cursor: Cursor | None = None


class ListDevicesReply(Tolerant):
    devices: tuple[Device, ...]
    next_cursor: str | None


class DeviceDetailRequest(Exact):
    instance_id: UUID
    cursor: Cursor | None = None


class DeviceDetailReply(Tolerant):
    device: Device
    requests: tuple[RemoteRequest, ...]
    reports: tuple[ReportSummary, ...]
    next_cursor: str | None


class ReportDetailRequest(Exact):
    report_id: UUID


class RevokeRequest(Exact):
    instance_id: UUID


class RevokeReply(Tolerant):
    revoked: Literal[True]
