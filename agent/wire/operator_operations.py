"""Bodies and replies of the five operations for operators (contract: Resources)."""

from typing import Annotated, Literal

from pydantic import Field

from agent.wire.base import Absent, Array, Count, Exact, LiteralTrue, Timestamp, Tolerant, Uuid
from agent.wire.device_operations import Command, EnrollmentRecord
from agent.wire.payloads.by_kind import ReportPayload
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
    """An enrolled device in a listing."""

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
    id: Uuid
    instance_id: Uuid
    binding_id: Uuid
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
    report_id: Uuid
    request_id: Uuid | None
    kind: Kind
    outcome: Outcome
    failure_reason: FailureReason | None
    organization_id: NonEmptyText
    location_id: NonEmptyText
    created_at: Timestamp
    tracker_status: TrackerStatus
    tracker_event_id: NonEmptyText


class ReportDetail(Tolerant):
    id: Uuid
    request_id: Uuid | None
    kind: Kind
    outcome: Outcome
    failure_reason: FailureReason | None
    organization_id: NonEmptyText
    location_id: NonEmptyText
    created_at: Timestamp
    tracker_status: TrackerStatus
    tracker_event_id: NonEmptyText
    instance_id: Uuid
    binding_id: Uuid
    user_id: NonEmptyText
    payload: Annotated[ReportPayload, Field(discriminator="version")] | None
    payload_hash: NonEmptyText
    tracker_attempts: Count
    updated_at: Timestamp


class CreateRequestRequest(Exact):
    instance_id: Uuid
    kind: Kind


class CreateRequestReply(Command):
    status: Literal["queued"]


class ListDevicesRequest(Exact):
    cursor: Absent[Cursor] = None


class ListDevicesReply(Tolerant):
    devices: Array[Device]
    next_cursor: str | None


class DeviceDetailRequest(Exact):
    instance_id: Uuid
    cursor: Absent[Cursor] = None


class DeviceDetailReply(Tolerant):
    device: Device
    requests: Array[RemoteRequest]
    reports: Array[ReportSummary]
    next_cursor: str | None  # the next page has further requests and further reports


class ReportDetailRequest(Exact):
    report_id: Uuid


class RevokeRequest(Exact):
    instance_id: Uuid


class RevokeReply(Tolerant):
    revoked: LiteralTrue
