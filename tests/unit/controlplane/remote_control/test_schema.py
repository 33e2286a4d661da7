"""Tests of the schemas of remoteControl in `tests/fakes/remote_control`.

The schemas refuse replies that the contract does not define.
"""

import copy
import json
from typing import Any

import httpx2
import pytest

from tests.contract import golden
from tests.fakes.remote_control import schema

REPLIES = {
    "challenge": "challenge/reply",
    "enroll": "enroll/reply",
    "current": "current/reply",
    "heartbeat": "heartbeat/reply",
    "acknowledge": "acknowledge/reply-running",
    "submitResult": "submitResult/reply",
    "createRequest": "createRequest/reply",
    "listDevices": "listDevices/reply",
    "deviceDetail": "deviceDetail/reply",
    "reportDetail": "reportDetail/reply-network",
    "revoke": "revoke/reply",
}


def reply(name: str, body: Any, status: int = 200, method: str = "POST") -> httpx2.Response:
    request = httpx2.Request(method, f"http://service{schema.PREFIX}{name}")
    content = json.dumps(body)  # json=None would send no body
    headers = {"content-type": "application/json"}
    return httpx2.Response(status, content=content, headers=headers, request=request)


def example_with(name: str, *path: str | int, to: Any) -> httpx2.Response:
    """Return the example reply of an operation with ``to`` as the value at ``path``."""
    body = copy.deepcopy(golden.document_of(REPLIES[name]))
    parent: Any = body
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = to
    return reply(name, body)


@pytest.mark.parametrize("name", REPLIES)
def test_valid_replies_fit_the_schema(name: str) -> None:
    schema.require_fitting(reply(name, golden.document_of(REPLIES[name])))


@pytest.mark.parametrize(
    "valid_reply",
    [
        reply("current", None),
        reply("onCommands", {"any": "content"}),
        reply("revoke", {"any": "refusal"}, 409),
        reply("elsewhere", 1),
        example_with("reportDetail", "payload", to=None),
        example_with("heartbeat", "lastSeenAt", to="2026-11-20T12:00:00.123+04:00"),
    ],
)
def test_permitted_variants_and_replies_without_a_schema_fit(valid_reply: httpx2.Response) -> None:
    schema.require_fitting(valid_reply)


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_with_a_missing_or_additional_field_does_not_fit(name: str) -> None:
    body = golden.document_of(REPLIES[name])
    invalid_bodies = [
        body | {"colour": 1},
        *({k: v for k, v in body.items() if k != key} for key in body),
    ]
    for value in (*invalid_bodies, None if name != "current" else 1):
        with pytest.raises(schema.NotFittingError):
            schema.require_fitting(reply(name, value))


@pytest.mark.parametrize("path", [("device",), ("requests", 0), ("reports", 0)])
def test_a_record_with_a_missing_or_additional_field_does_not_fit(
    path: tuple[str | int, ...],
) -> None:
    record: Any = golden.document_of(REPLIES["deviceDetail"])
    for step in path:
        record = record[step]
    for key in record:
        shortened = {name: value for name, value in record.items() if name != key}
        with pytest.raises(schema.NotFittingError):
            schema.require_fitting(example_with("deviceDetail", *path, to=shortened))
    with pytest.raises(schema.NotFittingError):
        schema.require_fitting(example_with("deviceDetail", *path, "colour", to=1))


@pytest.mark.parametrize(
    "invalid_reply",
    [
        reply("revoke", {"revoked": True}, 201),
        reply("revoke", {"revoked": True}, method="GET"),
        example_with("revoke", "revoked", to=False),
        example_with("challenge", "challengeId", to="7"),
        example_with("challenge", "nonce", to=""),
        example_with("enroll", "capabilities", to=["x"] * 33),
        example_with("enroll", "capabilities", to=["x" * 129]),
        example_with("enroll", "locationId", to="🖨" * 65),
        example_with("enroll", "appVersion", to=1),
        example_with("heartbeat", "lastSeenAt", to="2026-11-20"),
        example_with("heartbeat", "lastSeenAt", to="2026-11-20T12:00:00"),
        example_with("heartbeat", "lastSeenAt", to=None),
        example_with("acknowledge", "status", to="queued"),
        example_with("submitResult", "trackerStatus", to="new"),
        example_with("createRequest", "version", to=2),
        example_with("createRequest", "status", to="received"),
        example_with("deviceDetail", "device", "platform", to="beos"),
        example_with("deviceDetail", "device", "online", to=1),
        example_with("deviceDetail", "device", "userId", to=""),
        example_with("deviceDetail", "requests", 0, "status", to="lost"),
        example_with("deviceDetail", "requests", 0, "receivedAt", to=""),
        example_with("deviceDetail", "reports", 0, "failureReason", to="other"),
        example_with("deviceDetail", "nextCursor", to=7),
        example_with("reportDetail", "trackerAttempts", to=-1),
        example_with("reportDetail", "trackerAttempts", to=2**53),
        example_with("reportDetail", "payloadHash", to=""),
        example_with("reportDetail", "payload", to={}),
        example_with("reportDetail", "payload", "version", to=3),
        example_with("reportDetail", "payload", "networkMap", "truncated", to=None),
    ],
)
def test_replies_that_violate_the_schema_do_not_fit(invalid_reply: httpx2.Response) -> None:
    with pytest.raises(schema.NotFittingError):
        schema.require_fitting(invalid_reply)
