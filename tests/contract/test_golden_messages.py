"""Every message of the contract as a literal file, read and written by our models."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agent.wire import device_operations as device
from agent.wire import operator_operations as operator
from agent.wire.base import Message
from agent.wire.codec import decode, encode, validate
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.by_kind import PAYLOADS
from agent.wire.payloads.network import NetworkPayload
from agent.wire.problem import Problem
from agent.wire.validation import ValidationError
from tests.contract import golden
from tests.contract.hand_built import MESSAGES

MODELS: dict[str, type[Message]] = {
    "challenge/request": device.ChallengeRequest,
    "challenge/request-minimal": device.ChallengeRequest,
    "challenge/reply": device.ChallengeReply,
    "enroll/request": device.EnrollRequest,
    "enroll/reply": device.EnrollmentRecord,
    "current/request": device.EmptyRequest,
    "current/reply": device.EnrollmentRecord,
    "heartbeat/request": device.HeartbeatRequest,
    "heartbeat/reply": device.HeartbeatReply,
    "acknowledge/request-received": device.AcknowledgeRequest,
    "acknowledge/request-running": device.AcknowledgeRequest,
    "acknowledge/reply-received": device.AcknowledgeReply,
    "acknowledge/reply-running": device.AcknowledgeReply,
    "onCommands/request": device.EmptyRequest,
    "onCommands/command": device.Command,
    "onCommands/command-again": device.Command,
    "submitResult/request-network": device.SubmitResultRequest,
    "submitResult/request-scheduled": device.SubmitResultRequest,
    "submitResult/request-failed": device.SubmitResultRequest,
    "submitResult/reply": device.SubmitResultReply,
    "submitResult/reply-scheduled": device.SubmitResultReply,
    "payloads/network-full": NetworkPayload,
    "payloads/network-minimal": NetworkPayload,
    "payloads/application-full": ApplicationPayload,
    "payloads/application-minimal": ApplicationPayload,
    "createRequest/request": operator.CreateRequestRequest,
    "createRequest/reply": operator.CreateRequestReply,
    "listDevices/request": operator.ListDevicesRequest,
    "listDevices/request-next": operator.ListDevicesRequest,
    "listDevices/reply": operator.ListDevicesReply,
    "listDevices/reply-end": operator.ListDevicesReply,
    "deviceDetail/request": operator.DeviceDetailRequest,
    "deviceDetail/request-next": operator.DeviceDetailRequest,
    "deviceDetail/reply": operator.DeviceDetailReply,
    "reportDetail/request": operator.ReportDetailRequest,
    "reportDetail/reply-network": operator.ReportDetail,
    "reportDetail/reply-application": operator.ReportDetail,
    "reportDetail/reply-without-payload": operator.ReportDetail,
    "revoke/request": operator.RevokeRequest,
    "revoke/reply": operator.RevokeReply,
}
OTHER_VERSIONS: dict[str, str] = {
    "challenge/reply-later": "challenge/reply",
    "enroll/reply-later": "enroll/reply",
    "current/reply-later": "current/reply",
    "heartbeat/reply-later": "heartbeat/reply",
    "acknowledge/reply-later": "acknowledge/reply-received",
    "onCommands/command-later": "onCommands/command",
    "onCommands/command-without-status": "onCommands/command",
    "submitResult/reply-later": "submitResult/reply",
    "createRequest/reply-later": "createRequest/reply",
    "listDevices/reply-later": "listDevices/reply",
    "deviceDetail/reply-later": "deviceDetail/reply",
    "revoke/reply-later": "revoke/reply",
}
"""Messages with keys that only a later version of the service sends, and a command without a
status. Each is mapped to the message of today that has the same meaning.
"""
TESTED_SEPARATELY = {"current/reply-null", "problem/problem"}


def test_every_golden_file_is_used_by_a_test() -> None:
    assert set(golden.names()) == MODELS.keys() | OTHER_VERSIONS.keys() | TESTED_SEPARATELY


@pytest.mark.parametrize("name", MODELS)
def test_a_decoded_message_is_encoded_to_the_same_json(name: str) -> None:
    message = decode(golden.text_of(name), MODELS[name])

    assert json.loads(encode(message)) == golden.document_of(name)


@pytest.mark.parametrize("name", MESSAGES)
def test_a_model_built_by_hand_is_written_as_the_golden_message(name: str) -> None:
    assert json.loads(encode(MESSAGES[name])) == golden.document_of(name)
    assert decode(encode(MESSAGES[name]), MODELS[name]) is not None


def test_every_sent_message_is_built_by_hand() -> None:
    sent = {name for name in MODELS if "/request" in name or name.startswith("payloads/")}

    assert MESSAGES.keys() == sent


@pytest.mark.parametrize(("other", "today"), OTHER_VERSIONS.items())
def test_unknown_keys_in_replies_are_ignored_and_a_missing_status_is_queued(
    other: str, today: str
) -> None:
    model = MODELS[today]

    read = decode(golden.text_of(other), model)

    assert read == decode(golden.text_of(today), model)
    assert json.loads(encode(read)) == golden.document_of(today)


@pytest.mark.parametrize("name", MESSAGES)
def test_an_unknown_key_in_a_sent_message_is_an_error(name: str) -> None:
    document = {**golden.document_of(name), "surprise": 1}

    with pytest.raises(ValidationError, match="surprise"):
        decode(json.dumps(document), MODELS[name])


ALL_KEYS = [(name, key) for name in sorted(MODELS) for key in golden.document_of(name)]
OPTIONAL = {
    ("challenge/request", "appVersion"),
    ("onCommands/command", "status"),
    ("onCommands/command-again", "status"),
    ("listDevices/request-next", "cursor"),
    ("deviceDetail/request-next", "cursor"),
    *((f"submitResult/request-{which}", "report") for which in ("network", "scheduled", "failed")),
    *((f"submitResult/request-{which}", "requestId") for which in ("network", "failed")),
    ("submitResult/request-failed", "failureReason"),
}


@pytest.mark.parametrize(("name", "key"), [pair for pair in ALL_KEYS if pair not in OPTIONAL])
def test_a_missing_key_is_an_error(name: str, key: str) -> None:
    document = golden.document_of(name)
    del document[key]

    with pytest.raises(ValidationError, match=key):
        decode(json.dumps(document), MODELS[name])


@pytest.mark.parametrize(("name", "key"), sorted(OPTIONAL))
def test_an_optional_key_may_be_missing(name: str, key: str) -> None:
    document = golden.document_of(name)
    del document[key]

    decode(json.dumps(document), MODELS[name])


def test_the_reply_of_current_may_be_null() -> None:
    either: Any = device.EnrollmentRecord | None

    assert decode(golden.text_of("current/reply-null"), either) is None
    assert decode(golden.text_of("current/reply"), either) is not None


def test_a_problem_is_parsed_even_if_empty() -> None:
    problem = decode(golden.text_of("problem/problem"), Problem)

    assert problem.code == "validation_error"
    assert problem.trace_id == "4bf92f3577b34da6"
    assert problem.errors == {"signature": ("too short", "not hex")}
    assert decode("{}", Problem).detail is None


@pytest.mark.parametrize("name", sorted(n for n in MESSAGES if n.startswith("payloads/")))
def test_a_payload_omits_fields_without_a_value(name: str) -> None:
    """Optional keys are absent; only keys that the contract defines as nullable can be null."""
    nullable = {
        "osPlatform", "nativeAppVersion", "nativeProtocolVersion", "webRelease", "discovery",
        "printers", "networkMap", "model", "macAddress", "address", "reason", "matchedEndpoint",
        "version",
    }  # fmt: skip

    def nulls(document: object) -> set[str]:
        if isinstance(document, dict):
            here = {key for key, value in document.items() if value is None}
            return here.union(*(nulls(value) for value in document.values()))
        if isinstance(document, list):
            return set[str]().union(*(nulls(value) for value in document))
        return set()

    assert nulls(json.loads(encode(MESSAGES[name]))) <= nullable


@pytest.mark.parametrize(
    "timestamp",
    [
        "2026-11-20T19:04:12Z",
        "2026-11-20T20:04:12+01:00",
        "2026-11-20T19:04:12.000",
        "2026-11-20T19:04:12.000Z",
    ],
)
def test_a_timestamp_in_any_form_is_parsed_as_utc(timestamp: str) -> None:
    reply = decode(json.dumps({"lastSeenAt": timestamp}), device.HeartbeatReply)

    assert reply.last_seen_at.isoformat() == "2026-11-20T19:04:12+00:00"


@pytest.mark.parametrize("timestamp", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00"])
def test_a_timestamp_whose_utc_time_is_out_of_range_is_parsed(timestamp: str) -> None:
    reply = decode(json.dumps({"lastSeenAt": timestamp}), device.HeartbeatReply)

    assert reply.last_seen_at.tzinfo is not None
    assert reply.last_seen_at.year == int(timestamp[:4])


@pytest.mark.parametrize("value", ["null", "true", '"soon"', "[]", '"2026-13-01T00:00:00Z"'])
def test_an_invalid_timestamp_is_refused(value: str) -> None:
    with pytest.raises(ValidationError):
        decode(f'{{"lastSeenAt": {value}}}', device.HeartbeatReply)


def _paths_of_numbers_and_booleans(
    value: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of each number and each boolean, except in the values of snapshot fields."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from _paths_of_numbers_and_booleans(inner, (*path, key)) if key != "value" else ()
    elif isinstance(value, bool | int | float):
        yield path


@pytest.mark.parametrize("name", MODELS)
def test_a_boolean_is_refused_as_a_number_and_a_number_as_a_boolean(name: str) -> None:
    for path in _paths_of_numbers_and_booleans(golden.document_of(name)):
        document = golden.document_of(name)
        container = document
        for part in path[:-1]:
            container = container[part]
        is_number = not isinstance(container[path[-1]], bool)
        for other in (True, False) if is_number else (1, 0, 1.0):
            container[path[-1]] = other
            if MODELS[name] is device.SubmitResultRequest:
                content = document["report"]
                model: type[Any] = PAYLOADS[document["kind"]]
            else:
                content, model = document, MODELS[name]
            with pytest.raises(ValidationError) as refusal:
                validate(content, model)
            assert path[-1] in refusal.value.issues[0].path, (path, other)
