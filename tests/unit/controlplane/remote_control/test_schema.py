"""Tests of the schemas of remoteControl in `tests/fakes/schemas`.

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


def changed(name: str, *path: str | int, to: Any) -> httpx2.Response:
    """Return the example reply of an operation with ``to`` as the value at ``path``."""
    body = copy.deepcopy(golden.document_of(REPLIES[name]))
    place: Any = body
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return reply(name, body)


@pytest.mark.parametrize("name", REPLIES)
def test_valid_replies_fit_the_schema(name: str) -> None:
    schema.require_fitting(reply(name, golden.document_of(REPLIES[name])))


@pytest.mark.parametrize(
    "right",
    [
        reply("current", None),
        reply("onCommands", {"not": "shown"}),
        reply("revoke", {"refusals": "are not shown"}, 409),
        reply("elsewhere", 1),
        changed("reportDetail", "payload", to=None),
        changed("heartbeat", "lastSeenAt", to="2026-11-20T12:00:00.123+04:00"),
    ],
)
def test_other_permitted_replies_fit_the_schema(right: httpx2.Response) -> None:
    schema.require_fitting(right)


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_with_a_missing_or_additional_field_does_not_fit(name: str) -> None:
    body = golden.document_of(REPLIES[name])
    wrong = [body | {"colour": 1}, *({k: v for k, v in body.items() if k != key} for key in body)]
    for value in (*wrong, None if name != "current" else 1):
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
        rest = {name: value for name, value in record.items() if name != key}
        with pytest.raises(schema.NotFittingError):
            schema.require_fitting(changed("deviceDetail", *path, to=rest))
    with pytest.raises(schema.NotFittingError):
        schema.require_fitting(changed("deviceDetail", *path, "colour", to=1))


DEVICE = ("device",)


@pytest.mark.parametrize(
    "wrong",
    [
        reply("revoke", {"revoked": True}, 201),
        reply("revoke", {"revoked": True}, method="GET"),
        changed("revoke", "revoked", to=False),
        changed("challenge", "challengeId", to="7"),
        changed("challenge", "nonce", to=""),
        changed("enroll", "capabilities", to=["x"] * 33),
        changed("enroll", "capabilities", to=["x" * 129]),
        changed("enroll", "locationId", to="🖨" * 65),
        changed("enroll", "appVersion", to=1),
        changed("heartbeat", "lastSeenAt", to="2026-11-20"),
        changed("heartbeat", "lastSeenAt", to="2026-11-20T12:00:00"),
        changed("heartbeat", "lastSeenAt", to=None),
        changed("acknowledge", "status", to="queued"),
        changed("submitResult", "trackerStatus", to="new"),
        changed("createRequest", "version", to=2),
        changed("createRequest", "status", to="received"),
        changed("deviceDetail", *DEVICE, "platform", to="beos"),
        changed("deviceDetail", *DEVICE, "online", to=1),
        changed("deviceDetail", *DEVICE, "userId", to=""),
        changed("deviceDetail", "requests", 0, "status", to="lost"),
        changed("deviceDetail", "requests", 0, "receivedAt", to=""),
        changed("deviceDetail", "reports", 0, "failureReason", to="other"),
        changed("deviceDetail", "nextCursor", to=7),
        changed("reportDetail", "trackerAttempts", to=-1),
        changed("reportDetail", "trackerAttempts", to=2**53),
        changed("reportDetail", "payloadHash", to=""),
        changed("reportDetail", "payload", to={}),
        changed("reportDetail", "payload", "version", to=3),
        changed("reportDetail", "payload", "networkMap", "truncated", to=None),
    ],
)
def test_replies_that_violate_the_schema_do_not_fit(wrong: httpx2.Response) -> None:
    with pytest.raises(schema.NotFittingError):
        schema.require_fitting(wrong)
