"""Bodies and replies of the seven operations for devices (contract: Endpoints, remoteControl)."""

from typing import Annotated, Any

from agent.wire import limits
from agent.wire.base import (
    Absent,
    Array,
    Exact,
    LiteralOne,
    LiteralTrue,
    MaxItems,
    Timestamp,
    Tolerant,
    Uuid,
)
from agent.wire.text import (
    AppVersion,
    Capability,
    LegacyInstallId,
    LocationId,
    NonEmptyText,
    Utf16Length,
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

Capabilities = Annotated[tuple[Capability, ...], MaxItems(limits.CAPABILITIES_MAX)]


class ChallengeRequest(Exact):
    instance_id: Uuid
    public_key: Annotated[str, Utf16Length(limits.PUBLIC_KEY_LENGTH, limits.PUBLIC_KEY_LENGTH)]
    platform: Platform
    location_id: LocationId
    legacy_install_id: LegacyInstallId  # the name of the device
    app_version: Absent[AppVersion] = None
    capabilities: Capabilities


class ChallengeReply(Tolerant):
    challenge_id: Uuid
    nonce: NonEmptyText


class EnrollRequest(Exact):
    challenge_id: Uuid
    signature: Annotated[str, Utf16Length(limits.SIGNATURE_MAX, limits.SIGNATURE_MIN)]


class EnrollmentRecord(Tolerant):
    """The reply of `enroll` and `current`: the device with its binding."""

    instance_id: Uuid
    location_id: LocationId
    legacy_install_id: LegacyInstallId
    app_version: str | None
    capabilities: Capabilities
    binding_id: Uuid
    organization_id: NonEmptyText


class EmptyRequest(Exact):
    """The body of operations without parameters, such as `current`: an object without keys."""


class HeartbeatRequest(Exact):
    binding_id: Uuid
    foreground: bool  # whether the agent runs in a terminal, not in the background


class HeartbeatReply(Tolerant):
    last_seen_at: Timestamp


class AcknowledgeRequest(Exact):
    request_id: Uuid
    binding_id: Uuid
    status: AcknowledgedStatus


class AcknowledgeReply(Tolerant):
    accepted: LiteralTrue
    status: AcknowledgedStatus


class SubmitResultRequest(Exact):
    """The body of `submitResult`.

    ``report`` is usually a version-1 or version-2 payload, or null.
    """

    binding_id: Uuid
    report_id: Uuid
    kind: Kind
    outcome: Outcome
    request_id: Absent[Uuid] = None
    report: Any = None
    failure_reason: Absent[FailureReason] = None


class SubmitResultReply(Tolerant):
    report_id: Uuid
    request_id: Uuid | None
    outcome: Outcome
    tracker_status: TrackerStatus


class Command(Tolerant):
    """One request for a report, as `onCommands` delivers it.

    The contract does not define the reply of `onCommands`. It is assumed to contain the same object
    as the reply of `createRequest`. When the service delivers a request again, the request's status
    can be different, so any status is accepted.
    """

    version: LiteralOne
    request_id: Uuid
    binding_id: Uuid
    kind: Kind
    expires_at: Timestamp
    status: RequestStatus = "queued"


class CommandList(Tolerant):
    """The reply of `onCommands` to a caller that does not request a stream.

    It has the requests that the devices of the caller's API key have not started, oldest first.
    The contract does not define this reply.
    """

    commands: Array[Command]
