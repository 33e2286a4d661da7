"""The replies of remoteControl, and the bodies of the operators' calls, as JSON Schema.

They are transcribed from the tables of the contract document only, independently of the service.
Payloads of reports and bodies of the devices' calls are transcribed in
`tests.fakes.schemas.contract`. The document does not show the reply of ``onCommands``, so any reply
is accepted there.
"""

import functools
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import httpx2
from jsonschema import FormatChecker

from tests.fakes.schemas import contract
from tests.fakes.schemas.compiled import CompiledValidator
from tests.fakes.schemas.contract import (
    BOOLEAN,
    COUNT,
    KIND,
    UUID,
    NotFittingError,
    Schema,
    array,
    each,
    enum,
    exact,
    null_or,
)

PREFIX: Final = "/api/public/v1/remoteControl/"
SOME_TEXT: Final[Schema] = {"type": "string", "minLength": 1}
NAME: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 128}
TIMESTAMP: Final[Schema] = {"type": "string", "format": "timestamp"}
OUTCOME: Final = enum("completed", "partial", "failed")
TRACKER_STATUS: Final = enum("pending", "sent", "failed", "disabled")


_ENROLLMENT_FIELDS: Final[dict[str, Schema]] = {
    **each("instanceId bindingId", UUID),
    **each("locationId legacyInstallId", NAME),
    "appVersion": null_or({"type": "string"}),
    "capabilities": array(NAME, 32),
    "organizationId": SOME_TEXT,
}
ENROLLMENT = exact(_ENROLLMENT_FIELDS)
DEVICE = exact(
    {
        **_ENROLLMENT_FIELDS,
        "platform": enum("android", "ios", "macos", "windows", "linux"),
        "userId": SOME_TEXT,
        "revokedAt": null_or(TIMESTAMP),
        **each("lastSeenAt createdAt", TIMESTAMP),
        **each("foreground online", BOOLEAN),
        **each("locationName organizationName", null_or({"type": "string"})),
    }
)
REMOTE_REQUEST = exact(
    {
        **each("id instanceId bindingId", UUID),
        **each("organizationId locationId requestedById", SOME_TEXT),
        "kind": KIND,
        "status": enum(
            "queued", "received", "running", "expired", "completed", "partial", "failed"
        ),
        **each("expiresAt createdAt updatedAt", TIMESTAMP),
        **each("receivedAt startedAt finishedAt", null_or(TIMESTAMP)),
    }
)
_REPORT_FIELDS: Final[dict[str, Schema]] = {
    "requestId": null_or(UUID),
    "kind": KIND,
    "outcome": OUTCOME,
    "failureReason": null_or(enum("collection-failed", "execution-interrupted")),
    **each("organizationId locationId trackerEventId", SOME_TEXT),
    "createdAt": TIMESTAMP,
    "trackerStatus": TRACKER_STATUS,
}
REPORT_SUMMARY = exact({"reportId": UUID, **_REPORT_FIELDS})
REPORT_DETAIL = exact(
    {
        **_REPORT_FIELDS,
        **each("id instanceId bindingId", UUID),
        **each("userId payloadHash", SOME_TEXT),
        "payload": null_or(contract.NETWORK_PAYLOAD, contract.APPLICATION_PAYLOAD),
        "trackerAttempts": COUNT,
        "updatedAt": TIMESTAMP,
    }
)
CHALLENGE = exact({"challengeId": UUID, "nonce": SOME_TEXT})
HEARTBEAT = exact({"lastSeenAt": TIMESTAMP})
ACKNOWLEDGED = exact({"accepted": {"const": True}, "status": enum("received", "running")})
SUBMITTED = exact(
    {
        "reportId": UUID,
        "requestId": null_or(UUID),
        "outcome": OUTCOME,
        "trackerStatus": TRACKER_STATUS,
    }
)
CREATED_REQUEST = exact(
    {
        "version": {"const": 1},
        **each("requestId bindingId", UUID),
        "kind": KIND,
        "expiresAt": TIMESTAMP,
        "status": {"const": "queued"},
    }
)
_NEXT: Final[dict[str, Schema]] = {"nextCursor": null_or({"type": "string"})}
DEVICES = exact({"devices": array(DEVICE), **_NEXT})
DEVICE_DETAIL = exact(
    {
        "device": DEVICE,
        "requests": array(REMOTE_REQUEST),
        "reports": array(REPORT_SUMMARY),
        **_NEXT,
    }
)
REVOKED = exact({"revoked": {"const": True}})
_CURSOR: Final[dict[str, Schema]] = {"cursor": {"type": "string", "maxLength": 128}}
_INSTANCE: Final[dict[str, Schema]] = {"instanceId": UUID}

OPERATIONS: Final[Mapping[str, tuple[Schema, Schema]]] = {
    "challenge": (contract.CHALLENGE, CHALLENGE),
    "enroll": (contract.ENROLL, ENROLLMENT),
    "current": (contract.EMPTY, null_or(ENROLLMENT)),
    "heartbeat": (contract.HEARTBEAT, HEARTBEAT),
    "acknowledge": (contract.ACKNOWLEDGE, ACKNOWLEDGED),
    "submitResult": (contract.SUBMIT_RESULT, SUBMITTED),
    "onCommands": (contract.EMPTY, {}),
    "createRequest": (exact({**_INSTANCE, "kind": KIND}), CREATED_REQUEST),
    "listDevices": (exact({}, _CURSOR), DEVICES),
    "deviceDetail": (exact(_INSTANCE, _CURSOR), DEVICE_DETAIL),
    "reportDetail": (exact({"reportId": UUID}), REPORT_DETAIL),
    "revoke": (exact(_INSTANCE), REVOKED),
}
"""The schemas of the request's body and of the reply's body, by operation."""
_FORMATS: Final = FormatChecker(formats=())


@_FORMATS.checks("timestamp", raises=ValueError)
def _is_timestamp(value: object) -> bool:
    """Return whether a text is a date-time of ISO 8601: a date, a time, and a UTC offset."""
    if not isinstance(value, str):
        return True
    return value[10:11] == "T" and datetime.fromisoformat(value).tzinfo is not None


def _compiled_timestamp(value: str) -> bool:
    """Return False if `_is_timestamp` raises ValueError. Used by the compiled validator."""
    try:
        return _is_timestamp(value)
    except ValueError:
        return False


def require_fitting(reply: httpx2.Response) -> None:
    """Raise NotFittingError if the reply of a remoteControl call does not match the document.

    Refusals and streams are not checked, because the document does not show them.
    """
    name = reply.request.url.path.removeprefix(PREFIX)
    content_type = reply.headers.get("content-type", "")
    is_stream = content_type.startswith("text/event-stream")
    if name not in OPERATIONS or reply.status_code >= 400 or is_stream:
        return
    if (reply.request.method, reply.status_code) != ("POST", 200):
        raise NotFittingError(f"{reply.request.method} {name} answered {reply.status_code}")
    if content_type != "application/json":
        raise NotFittingError(f"{name} has the content type {content_type}")
    for mistake in mistakes(name, reply.json()):
        raise NotFittingError(f"{name}: {mistake}")


def mistakes(name: str, body: Any, *, is_request: bool = False) -> Iterator[str]:
    """Yield each error in the body of a reply, or of a request if ``is_request``."""
    return _validator(name, is_request=is_request).mistakes(body)


@functools.cache
def _validator(name: str, *, is_request: bool) -> CompiledValidator:
    schema = OPERATIONS[name][0 if is_request else 1]
    return contract.validator(schema, _FORMATS, {"timestamp": _compiled_timestamp})
