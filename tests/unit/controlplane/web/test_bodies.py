"""Tests that an untrusted body becomes a model, or a refusal that names the invalid fields."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.wire.codec import encode
from agent.wire.device_operations import AcknowledgeRequest, ChallengeRequest, SubmitResultRequest
from agent.wire.payloads.network import NetworkPayload
from controlplane.operation.bodies import (
    CONTAINERS_MAX,
    ERRORS_MAX,
    ITEMS_MAX,
    parse_body,
    parse_json,
    parse_part,
)
from controlplane.operation.errors import Refusal
from tests.fixtures.payloads import small_venue

ID = "0f7e4a52-8f4c-4f0e-9c52-6f1b1d1c7a10"


def refusal_of(body: bytes | str) -> Refusal:
    content = body.encode() if isinstance(body, str) else body
    with pytest.raises(Refusal) as error_info:
        parse_body(AcknowledgeRequest, content)
    return error_info.value


def errors_of_report(payload: Any) -> dict[str, tuple[str, ...]]:
    with pytest.raises(Refusal) as error_info:
        parse_part(NetworkPayload, payload, "report")
    return dict(error_info.value.errors or {})


def outcome_of(parse: Callable[[], Any]) -> Any:
    """Return the parsed value or the refusal. Any other exception fails the test."""
    try:
        return parse()
    except Refusal as refusal:
        return refusal


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b'{"a":1,"a":2}', "twice"),
        (b'{"a":{"b":1,"b":1}}', "twice"),
        (b'{"a":NaN}', "NaN"),
        (b'{"a":-Infinity}', "Infinity"),
        (b"\xff{}", "UTF-8"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b"[" * 40_000, "nested"),
        (b'{"a":' + b"9" * 5000 + b"}", "not JSON"),
    ],
)
def test_a_body_that_is_not_a_valid_json_object_is_an_invalid_request(
    body: bytes, word: str
) -> None:
    refusal = refusal_of(body)
    assert (refusal.status, refusal.code) == (400, "invalid_request")
    assert word in refusal.detail


def test_a_body_with_too_many_lists_is_refused_before_parsing() -> None:
    refusal = refusal_of(b'{"a":[' + b",".join([b"[]"] * CONTAINERS_MAX) + b"]}")
    assert (refusal.status, refusal.code) == (400, "invalid_request")
    assert f"more than {CONTAINERS_MAX} lists and objects" in refusal.detail


@pytest.mark.parametrize("template", ['{{"a":[{}]}}', '{{"a":{{{}}}}}'])
def test_a_body_with_too_many_items_is_refused_before_parsing(
    template: str,
) -> None:
    items = (f'"{number}":1' if "{{{" in template else "1" for number in range(ITEMS_MAX + 2))
    refusal = refusal_of(template.format(",".join(items)))
    assert (refusal.status, refusal.code) == (400, "invalid_request")
    assert f"more than {ITEMS_MAX} members and elements" in refusal.detail


def test_errors_have_the_json_names_of_the_fields() -> None:
    refusal = refusal_of(json.dumps({"requestId": "no", "status": "done", "extra": 1}))
    assert refusal.code == "validation_error"
    assert set(refusal.errors or {}) == {"requestId", "bindingId", "status", "extra"}


def test_values_of_a_wrong_type_are_not_converted() -> None:
    body = {"requestId": ID, "bindingId": ID, "status": ["received"]}
    assert set(refusal_of(json.dumps(body)).errors or {}) == {"status"}


def test_paths_of_errors_in_a_report_contain_only_json_names() -> None:
    payload = json.loads(encode(small_venue()))
    payload["endpoints"][2]["port"] = 70000
    payload["discovery"]["mdns"] = {"state": "failed"}
    del payload["networkMap"]["bounds"]["ports"]
    payload["networkMap"]["hosts"][1]["colour"] = "red"
    assert set(errors_of_report(payload)) == {
        "report.endpoints.2.port",
        "report.discovery.mdns.reason",
        "report.networkMap.bounds.ports",
        "report.networkMap.hosts.1.colour",
    }


def test_errors_beyond_the_limit_are_counted() -> None:
    payload = json.loads(encode(small_venue()))
    payload["limitations"] = [1] * 100
    with pytest.raises(Refusal) as error_info:
        parse_part(NetworkPayload, payload, "report")
    assert len(error_info.value.errors or {}) == ERRORS_MAX
    assert "50 more errors" in error_info.value.detail


def test_a_lone_surrogate_is_refused() -> None:
    payload = json.loads(encode(small_venue()))
    payload["scope"] = "\ud83d"
    with pytest.raises(Refusal) as error_info:
        parse_part(NetworkPayload, payload, "report")
    assert error_info.value.status == 400


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=20,
)
names = st.sampled_from(
    ["bindingId", "reportId", "kind", "outcome", "requestId", "report", "failureReason", "x"]
)


@given(st.binary(max_size=200))
def test_any_bytes_are_parsed_as_an_object_or_refused(body: bytes) -> None:
    result = outcome_of(lambda: parse_json(body))
    assert isinstance(result, dict) or result.status == 400


@given(st.dictionaries(names, json_values))
def test_any_body_is_parsed_or_refused_with_a_limited_number_of_errors(
    body: dict[str, Any],
) -> None:
    content = json.dumps(body).encode()
    for model in (SubmitResultRequest, ChallengeRequest):
        outcome = outcome_of(lambda model=model: parse_body(model, content))
        if not isinstance(outcome, Refusal):
            assert isinstance(outcome, model)
            continue
        assert outcome.status == 400
        assert len(outcome.errors or {}) <= ERRORS_MAX
        assert all(len(name) <= 256 for name in outcome.errors or {})


@given(json_values)
def test_errors_of_a_report_have_names_that_begin_with_report(value: Any) -> None:
    result = outcome_of(lambda: parse_part(NetworkPayload, value, "report"))
    assert isinstance(result, Refusal)
    assert all(name.split(".")[0] == "report" for name in result.errors or {})
