"""Each limit of the contract: the last accepted value and the first refused value."""

import json
from typing import Any

import pytest

from agent.wire import base, limits
from agent.wire import device_operations as device
from agent.wire import operator_operations as operator
from agent.wire.codec import decode, validate
from agent.wire.payloads.application import ApplicationPayload, BrowserField
from agent.wire.payloads.network import NetworkPayload
from agent.wire.text import utf16_length
from agent.wire.validation import ValidationError
from agent.wire.vocabulary import BrowserFieldKey
from tests.contract import golden

JsonPath = tuple[str | int, ...]
"""The keys and indexes that lead to a value."""

EMOJI = "🖨"
NETWORK = ("payloads/network-full", NetworkPayload)
APPLICATION = ("payloads/application-full", ApplicationPayload)
CHALLENGE = ("challenge/request", device.ChallengeRequest)
ENROLL = ("enroll/request", device.EnrollRequest)
RECORD = ("enroll/reply", device.EnrollmentRecord)
LIST = ("listDevices/request-next", operator.ListDevicesRequest)
DETAIL = ("deviceDetail/request-next", operator.DeviceDetailRequest)
REPORT = ("reportDetail/reply-network", operator.ReportDetail)

GoldenMessage = tuple[str, type[base.Message]]
"""The name of a golden file, and the model of its message."""

STRINGS: list[tuple[GoldenMessage, JsonPath, int, int]] = [
    (CHALLENGE, ("publicKey",), 88, 88),
    (CHALLENGE, ("locationId",), 1, 128),
    (CHALLENGE, ("legacyInstallId",), 1, 128),
    (CHALLENGE, ("appVersion",), 0, 128),
    (CHALLENGE, ("capabilities", 0), 1, 128),
    (ENROLL, ("signature",), 8, 128),
    (RECORD, ("locationId",), 1, 128),
    (RECORD, ("legacyInstallId",), 1, 128),
    (RECORD, ("capabilities", 0), 1, 128),
    (LIST, ("cursor",), 0, 128),
    (DETAIL, ("cursor",), 0, 128),
    *((NETWORK, (key,), 0, 1024) for key in ("startedAt", "finishedAt", "scope")),
    (NETWORK, ("reportId",), 1, 1024),
    *((NETWORK, ("identity", k), 1, 1024) for k in ("organizationId", "locationId", "installId")),
    *(
        (NETWORK, ("environment", key), 0, 1024)
        for key in ("userAgent", "osPlatform", "nativeAppVersion", "webRelease")
    ),
    (NETWORK, ("environment", "nativeCapabilities", 0), 0, 1024),
    (NETWORK, ("failures", 0, "step"), 1, 1024),
    (NETWORK, ("failures", 0, "reason"), 0, 1024),
    (NETWORK, ("limitations", 0), 0, 1024),
    (NETWORK, ("discovery", "mdns", "reason"), 0, 1024),
    *(
        (NETWORK, ("endpoints", 0, key), 0, 1024)
        for key in ("address", "host", "label", "model", "macAddress")
    ),
    (NETWORK, ("endpoints", 0, "matchedPrinterIds", 0), 1, 1024),
    (NETWORK, ("printers", 0, "id"), 1, 1024),
    *(
        (NETWORK, ("printers", 0, key), 0, 1024)
        for key in ("name", "address", "reason", "matchedEndpoint")
    ),
    *(
        (NETWORK, ("unavailable", key), 0, 1024)
        for key in ("macAddress", "interfaces", "gateway", "osVersion")
    ),
    (APPLICATION, ("browserFields", 0, "source"), 1, 256),
    (APPLICATION, ("browserFields", 0, "value"), 0, 256),
    (APPLICATION, ("browserFields", 4, "value", 0), 0, 256),
    (APPLICATION, ("browserFields", 5, "reason"), 1, 512),
]

ARRAYS: list[tuple[GoldenMessage, JsonPath, int]] = [
    (CHALLENGE, ("capabilities",), 32),
    (RECORD, ("capabilities",), 32),
    (NETWORK, ("failures",), 128),
    (NETWORK, ("limitations",), 128),
    (NETWORK, ("environment", "nativeCapabilities"), 128),
    (NETWORK, ("endpoints",), 256),
    (NETWORK, ("printers",), 64),
    (NETWORK, ("endpoints", 0, "matchedPrinterIds"), 64),
    (NETWORK, ("endpoints", 0, "discoveredBy"), 2),
    (APPLICATION, ("browserFields",), 34),
    (APPLICATION, ("browserFields", 4, "value"), 32),
]

INTEGERS: list[tuple[GoldenMessage, JsonPath, int, int]] = [
    (NETWORK, ("endpoints", 0, "port"), 1, 65535),
    (NETWORK, ("endpointsOmitted",), 0, 9007199254740991),
    (NETWORK, ("environment", "nativeProtocolVersion"), 0, 9007199254740991),
    (REPORT, ("trackerAttempts",), 0, 9007199254740991),
]


def _read(message: GoldenMessage, path: JsonPath, value: Any) -> base.Message:
    """Read a golden message after the value at ``path`` was replaced."""
    name, model = message
    document = golden.document_of(name)
    container = document
    for part in path[:-1]:
        container = container[part]
    container[path[-1]] = value
    return decode(json.dumps(document), model)


def _value_at(message: GoldenMessage, path: JsonPath) -> Any:
    container = golden.document_of(message[0])
    for part in path:
        container = container[part]
    return container


def _id(value: object) -> str | None:
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], type):
        return str(value[0])
    return ".".join(map(str, value)) if isinstance(value, tuple) else None


@pytest.mark.parametrize(("message", "path", "least", "most"), STRINGS, ids=_id)
def test_a_string_is_accepted_within_its_limits(
    message: GoldenMessage, path: JsonPath, least: int, most: int
) -> None:
    _read(message, path, "x" * least)
    _read(message, path, "x" * most)
    _read(message, path, EMOJI * (most // 2))
    with pytest.raises(ValidationError):
        _read(message, path, "x" * (most + 1))
    with pytest.raises(ValidationError):
        _read(message, path, EMOJI * (most // 2) + "x" * (1 + most % 2))
    if least:
        with pytest.raises(ValidationError):
            _read(message, path, "x" * (least - 1))


@pytest.mark.parametrize(("message", "path", "most"), ARRAYS, ids=_id)
def test_an_array_is_accepted_up_to_its_maximum_length(
    message: GoldenMessage, path: JsonPath, most: int
) -> None:
    first = _value_at(message, path)[0]

    _read(message, path, [first] * most)
    with pytest.raises(ValidationError):
        _read(message, path, [first] * (most + 1))
    _read(message, path, [])


@pytest.mark.parametrize(("message", "path", "least", "most"), INTEGERS, ids=_id)
def test_an_integer_is_accepted_within_its_limits(
    message: GoldenMessage, path: JsonPath, least: int, most: int
) -> None:
    _read(message, path, least)
    _read(message, path, most)
    for value in (least - 1, most + 1):
        with pytest.raises(ValidationError):
            _read(message, path, value)


def test_limits_are_those_of_the_contract() -> None:
    named = {name: getattr(limits, name) for name in dir(limits) if name.isupper()}

    assert named == {
        "PUBLIC_KEY_LENGTH": 88,
        "LOCATION_ID_MAX": 128,
        "LEGACY_INSTALL_ID_MAX": 128,
        "APP_VERSION_MAX": 128,
        "CAPABILITIES_MAX": 32,
        "CAPABILITY_MAX": 128,
        "SIGNATURE_MIN": 8,
        "SIGNATURE_MAX": 128,
        "CURSOR_MAX": 128,
        "INTEGER_MAX": 9007199254740991,
        "INTEGER_MIN": -9007199254740991,
        "PAYLOAD_STRING_MAX": 1024,
        "FAILURES_MAX": 128,
        "LIMITATIONS_MAX": 128,
        "NATIVE_CAPABILITIES_MAX": 128,
        "ENDPOINTS_MAX": 256,
        "PRINTERS_MAX": 64,
        "MATCHED_PRINTER_IDS_MAX": 64,
        "DISCOVERED_BY_MAX": 2,
        "PORT_MIN": 1,
        "PORT_MAX": 65535,
        "BROWSER_FIELDS_MAX": 34,
        "BROWSER_SOURCE_MAX": 256,
        "BROWSER_STRING_MAX": 256,
        "BROWSER_ARRAY_MAX": 32,
        "BROWSER_REASON_MAX": 512,
    }


@pytest.mark.parametrize(
    ("text", "units"),
    [("", 0), ("a", 1), ("é", 1), ("厨", 1), (EMOJI, 2), ("👨‍👩‍👧", 8), ("\ud800", 1)],
)
def test_lengths_are_utf16_code_units(text: str, units: int) -> None:
    assert utf16_length(text) == units


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(ValidationError):
        decode(
            '{"challengeId": "45c48cce-2e2d-4fbd-aa1a-fc51c7c6ad26", "nonce": "\\ud800"}',
            device.ChallengeReply,
        )


def test_there_are_34_browser_fields_and_no_other() -> None:
    keys = BrowserFieldKey.__args__  # type: ignore[attr-defined]

    absent = {"source": "s", "status": "unsupported", "reason": "r"}

    assert len(keys) == len(set(keys)) == 34
    for key in keys:
        validate({"key": key, **absent}, BrowserField)
    with pytest.raises(ValidationError):
        validate({"key": "browser.other", **absent}, BrowserField)


WORDS: list[tuple[GoldenMessage, JsonPath, str]] = [
    (CHALLENGE, ("platform",), "android ios macos windows linux"),
    (NETWORK, ("completeness",), "complete partial limited"),
    (NETWORK, ("environment", "platform"), "native browser"),
    (NETWORK, ("endpoints", 0, "discoveredBy", 0), "mdns scan"),
    (NETWORK, ("endpoints", 0, "status"), "reachable discovered"),
    (NETWORK, ("printers", 0, "transport"), "network serial ble usb"),
    (NETWORK, ("printers", 0, "status"), "reachable unreachable unknown"),
    (NETWORK, ("networkMap", "state"), "scanning completed cancelled"),
    (NETWORK, ("networkMap", "hosts", 0, "reachability"), "reachable unknown"),
    (NETWORK, ("networkMap", "hosts", 0, "sources", 0), "local gateway mdns tcp"),
    (NETWORK, ("networkMap", "hosts", 0, "services", 0, "source"), "mdns tcp"),
    (NETWORK, ("networkMap", "interfaces", 0, "addresses", 0, "family"), "ipv4 ipv6"),
    (APPLICATION, ("snapshot", "peripherals", 0, "kind"), "bluetooth usb"),
    (
        APPLICATION,
        ("snapshot", "fields", 0, "status"),
        "available unsupported permission-denied not-applicable collection-failed",
    ),
    (
        APPLICATION,
        ("browserFields", 5, "status"),
        "unsupported permission-denied not-applicable collection-failed",
    ),
    (REPORT, ("kind",), "network application"),
    (REPORT, ("outcome",), "completed partial failed"),
    (REPORT, ("failureReason",), "collection-failed execution-interrupted"),
    (REPORT, ("trackerStatus",), "pending sent failed disabled"),
    (
        ("onCommands/command", device.Command),
        ("status",),
        "queued received running expired completed partial failed",
    ),
    (
        ("acknowledge/request-received", device.AcknowledgeRequest),
        ("status",),
        "received running",
    ),
]


@pytest.mark.parametrize(("message", "path", "words"), WORDS, ids=_id)
def test_only_the_listed_words_are_accepted(
    message: GoldenMessage, path: JsonPath, words: str
) -> None:
    for word in words.split():
        _read(message, path, word)
    for other in ("other", words.upper().split()[-1], "", None, 1):
        if other is None and message is REPORT and path == ("failureReason",):
            continue  # null is permitted
        with pytest.raises(ValidationError):
            _read(message, path, other)


CONSTANTS: list[tuple[GoldenMessage, JsonPath, list[object]]] = [
    (NETWORK, ("version",), [1, 3, "2", None]),
    (APPLICATION, ("version",), [2, 0, "1", None]),
    (APPLICATION, ("reportType",), ["network", None]),
    (APPLICATION, ("snapshot", "version"), [2, "1"]),
    (("onCommands/command", device.Command), ("version",), [2, "1", None]),
    (("createRequest/reply", operator.CreateRequestReply), ("status",), ["received", None]),
    (("acknowledge/reply-received", device.AcknowledgeReply), ("accepted",), [False, None]),
    (("revoke/reply", operator.RevokeReply), ("revoked",), [False, None]),
]


@pytest.mark.parametrize(("message", "path", "others"), CONSTANTS, ids=_id)
def test_a_different_value_of_a_constant_is_refused(
    message: GoldenMessage, path: JsonPath, others: list[object]
) -> None:
    for other in others:
        with pytest.raises(ValidationError):
            _read(message, path, other)


def test_a_discovery_source_of_the_report_is_never_unsupported() -> None:
    state = {"state": "unsupported", "reason": "r"}

    _read(NETWORK, ("networkMap", "sources", "scan"), state)
    with pytest.raises(ValidationError):
        _read(NETWORK, ("discovery", "scan"), state)


@pytest.mark.parametrize("state", ["failed", "unsupported"])
def test_a_failed_or_unsupported_source_requires_a_reason(state: str) -> None:
    with pytest.raises(ValidationError):
        _read(NETWORK, ("networkMap", "sources", "scan"), {"state": state})


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_nan_and_infinity_are_refused(text: str) -> None:
    document = golden.text_of("payloads/network-full").replace("0.42", text)

    with pytest.raises(ValidationError):
        decode(document, NetworkPayload)
