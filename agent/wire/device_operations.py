"""The seven operations a device calls: bodies and replies (contract: Endpoints, remoteControl)."""

from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import UNSET, Meta

from agent.wire import limits
from agent.wire.base import Exact, Timestamp, Tolerant
from agent.wire.text import (
    AppVersion,
    Capability,
    LegacyInstallId,
    LocationId,
    NonEmptyText,
    at_most,
)
from agent.wire.vocabulary import (
    AcknowledgedStatus,
    FailureReason,
    Kind,
    Outcome,
    Platform,
    RequestStatus,
    TrackerStatus,
)

Capabilities = Annotated[tuple[Capability, ...], Meta(max_length=limits.CAPABILITIES_MAX)]


class ChallengeRequest(Exact):
    instance_id: UUID
    public_key: Annotated[
        str,
        Meta(max_length=limits.PUBLIC_KEY_LENGTH),
        at_most(limits.PUBLIC_KEY_LENGTH, at_least=limits.PUBLIC_KEY_LENGTH),
    ]
    platform: Platform
    location_id: LocationId
    legacy_install_id: LegacyInstallId
    app_version: AppVersion | None = None
    capabilities: Capabilities


class ChallengeReply(Tolerant):
    challenge_id: UUID
    nonce: NonEmptyText


class EnrollRequest(Exact):
    challenge_id: UUID
    signature: Annotated[
        str,
        Meta(max_length=limits.SIGNATURE_MAX),
        at_most(limits.SIGNATURE_MAX, at_least=limits.SIGNATURE_MIN),
    ]


class EnrollmentRecord(Tolerant):
    """What `enroll` and `current` answer: the device as the service has bound it."""

    instance_id: UUID
    location_id: LocationId
    legacy_install_id: LegacyInstallId
    app_version: AppVersion | None
    capabilities: Capabilities
    binding_id: UUID
    organization_id: NonEmptyText


class EmptyRequest(Exact):
    """The body of `current` and `onCommands`: an object without keys."""


class HeartbeatRequest(Exact):
    binding_id: UUID
    foreground: bool


class HeartbeatReply(Tolerant):
    last_seen_at: Timestamp


class AcknowledgeRequest(Exact):
    request_id: UUID
    binding_id: UUID
    status: AcknowledgedStatus


class AcknowledgeReply(Tolerant):
    accepted: Literal[True]
    status: AcknowledgedStatus


class SubmitResultRequest(Exact):
    """A report on its way. ``report`` is a version-1 or version-2 payload, or null (said so)."""

    binding_id: UUID
    report_id: UUID
    kind: Kind
    outcome: Outcome
    request_id: UUID | None = None
    report: Any = UNSET
    failure_reason: FailureReason | None = None


class SubmitResultReply(Tolerant):
    report_id: UUID
    request_id: UUID | None
    outcome: Outcome
    tracker_status: TrackerStatus


class Command(Tolerant):
    """One request for a report, in the shape of `createRequest`'s reply.

    The contract leaves the body of `onCommands` open; a request delivered a second time may
    carry the status it has by then, so any status is read.
    """

    version: Literal[1]
    request_id: UUID
    binding_id: UUID
    kind: Kind
    expires_at: Timestamp
    status: RequestStatus = "queued"
