"""Tests of every field of every request body of remoteControl: required fields, and limits.

A refusal names a field if and only if the value of the field is not permitted.
"""

import uuid
from typing import Any

import pytest

from tests.fakes.remote_control.schema import OPERATIONS, PREFIX, mistakes
from tests.unit.controlplane.running_service import RunningService

ID = "45c48cce-2e2d-4fbd-aa1a-fc51c7c6ad26"
INVALID_IDS: tuple[Any, ...] = ("", "7", ID[:-1], ID + "0", 7, None, [])
INVALID_KINDS: tuple[Any, ...] = ("", "Network", "other", 1, None)
NAME_VALUES = (("x", "x" * 128, "🖨" * 64), ("", "x" * 129, "🖨" * 64 + "x", 1, None))
"""Permitted and forbidden values of a name: 1 to 128 UTF-16 code units. "🖨" counts as two."""
PLATFORMS = ("android", "ios", "macos", "windows", "linux")

BODIES: dict[str, dict[str, Any]] = {
    "challenge": {
        "instanceId": ID, "publicKey": "0" * 88, "platform": "linux", "locationId": "loc",
        "legacyInstallId": "till", "appVersion": "1", "capabilities": [],
    },
    "enroll": {"challengeId": ID, "signature": "0" * 128},
    "current": {},
    "heartbeat": {"bindingId": ID, "foreground": True},
    "acknowledge": {"requestId": ID, "bindingId": ID, "status": "received"},
    "submitResult": {
        "bindingId": ID, "reportId": ID, "kind": "network", "outcome": "failed", "requestId": ID,
        "report": None, "failureReason": "collection-failed",
    },
    "onCommands": {},
    "createRequest": {"instanceId": ID, "kind": "network"},
    "listDevices": {"cursor": "x"},
    "deviceDetail": {"instanceId": ID, "cursor": "x"},
    "reportDetail": {"reportId": ID},
    "revoke": {"instanceId": ID},
}  # fmt: skip
"""For each operation, a valid body with every field. No stored object has the ids in these bodies.
"""

FIELDS: dict[tuple[str, str], tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    # Each row: operation and field, permitted values, forbidden values.
    ("challenge", "publicKey"): ((), ("0" * 87, "0" * 89, "", 1, None)),
    ("challenge", "platform"): (PLATFORMS, ("", "Linux", "other", 1, None)),
    ("challenge", "locationId"): NAME_VALUES,
    ("challenge", "legacyInstallId"): NAME_VALUES,
    ("challenge", "appVersion"): (("", "x" * 128), ("x" * 129, 1, None)),
    ("challenge", "capabilities"): (
        ([], ["x"] * 32, ["x" * 128]),
        (["x"] * 33, ["x" * 129], [""], [1], "x", None),
    ),
    ("enroll", "signature"): (("0" * 8, "0" * 128), ("0" * 7, "0" * 129, 1, None)),
    ("heartbeat", "foreground"): ((True, False), (0, "true", None)),
    ("acknowledge", "status"): (("received", "running"), ("queued", "completed", "", 1, None)),
    ("submitResult", "kind"): (("network", "application"), INVALID_KINDS),
    ("submitResult", "outcome"): (("failed",), ("done", "Failed", "", 1, None)),
    ("submitResult", "failureReason"): (
        ("collection-failed", "execution-interrupted"),
        ("other", "", 1, None),
    ),
    ("createRequest", "kind"): (("network", "application"), INVALID_KINDS),
    ("listDevices", "cursor"): (("", "x" * 128), ("x" * 129, 1, None)),
    ("deviceDetail", "cursor"): (("", "x" * 128), ("x" * 129, 1, None)),
    **{
        (operation, field): ((str(uuid.UUID(int=7)),), INVALID_IDS)
        for operation, body in BODIES.items()
        for field in body
        if field in {"instanceId", "challengeId", "bindingId", "requestId", "reportId"}
    },
}
"""For each field, its permitted and its forbidden values.

The field ``report`` is missing, because its permitted values depend on ``kind``.
"""


def test_every_field_of_the_operations_has_a_test() -> None:
    assert set(BODIES) == set(OPERATIONS)
    fields = {
        (name, field) for name, (request, _) in OPERATIONS.items() for field in _fields(request)
    }
    assert fields - {("submitResult", "report")} == set(FIELDS)
    for name, (request, _) in OPERATIONS.items():
        assert set(BODIES[name]) == set(_fields(request))


def _fields(schema: dict[str, Any]) -> dict[str, Any]:
    results: dict[str, Any] = schema["properties"]
    return results


async def refused_fields(service: RunningService, operation: str, body: dict[str, Any]) -> set[str]:
    """Call an operation. Return the top-level fields that its refusal names."""
    reply = await service.device().call(PREFIX + operation, **body)
    reply_body = reply.json() or {}
    if reply_body.get("code") != "validation_error":
        return set()
    return {field.partition(".")[0] for field in reply_body["errors"]}


@pytest.mark.parametrize(("operation", "field"), FIELDS)
async def test_a_field_accepts_permitted_values_and_refuses_forbidden_values(
    service: RunningService, operation: str, field: str
) -> None:
    permitted, forbidden = FIELDS[operation, field]
    for value in permitted:
        body = BODIES[operation] | {field: value}
        assert field not in await refused_fields(service, operation, body), value
        assert not list(mistakes(operation, body, is_request=True))
    for value in forbidden:
        body = BODIES[operation] | {field: value}
        assert field in await refused_fields(service, operation, body), value
        assert list(mistakes(operation, body, is_request=True))


@pytest.mark.parametrize("operation", BODIES)
async def test_the_service_requires_exactly_the_fields_that_the_contract_requires(
    service: RunningService, operation: str
) -> None:
    required = set(OPERATIONS[operation][0]["required"])
    assert await refused_fields(service, operation, {}) == required
    for field in BODIES[operation]:
        body = {name: value for name, value in BODIES[operation].items() if name != field}
        assert (field in await refused_fields(service, operation, body)) == (field in required)
