"""Tests of the error that the client raises for each reply of the service."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import (
    BodyRejected,
    BodyTooLarge,
    CredentialRefused,
    Refused,
    ServiceError,
    ServiceUnavailable,
    Throttled,
)
from agent.rules.replies import error_of, http_date, retry_after_s
from tests.unit.agent.hostile import hostile_text

NOW = datetime(2026, 11, 20, 19, 0, tzinfo=UTC)
HTML = {"content-type": "text/html; charset=utf-8"}
JSON = {"content-type": "application/problem+json"}

# Each line: the status of a reply, "html" if its body is a web page, and the expected error, or the
# cause of the ServiceUnavailable error. "fine" means that no error is expected.
TABLE = """
200  -    fine
201  -    fine
204  -    fine
200  html captive-portal
301  -    redirect
302  html redirect
307  -    redirect
304  -    redirect
400  -    BodyRejected
400  html captive-portal
401  -    CredentialRefused
401  html CredentialRefused
402  -    BodyRejected
403  -    Refused
403  html captive-portal
404  -    Refused
404  html captive-portal
405  -    BodyRejected
407  -    proxy
407  html proxy
408  -    timeout
408  html timeout
409  -    Refused
410  -    Refused
411  -    BodyRejected
413  -    BodyTooLarge
413  html BodyTooLarge
415  -    BodyRejected
418  -    BodyRejected
422  -    BodyRejected
425  -    timeout
429  -    Throttled
429  html Throttled
431  -    BodyRejected
451  -    BodyRejected
500  -    server-error
500  html server-error
501  -    server-error
502  html server-error
503  -    server-error
504  html server-error
511  html server-error
599  -    server-error
"""


def name_of(error: ServiceError | None) -> str:
    if error is None:
        return "fine"
    if isinstance(error, ServiceUnavailable) and not isinstance(error, Throttled):
        return error.cause
    return type(error).__name__


@pytest.mark.parametrize("row", TABLE.strip().splitlines())
def test_each_status_becomes_the_error_in_the_table(row: str) -> None:
    status, page, expected = row.split()

    error = error_of(int(status), HTML if page == "html" else JSON, b"", NOW)

    assert name_of(error) == expected
    if error is not None:
        assert str(error)
        assert str(error).count(f"(status {status})") <= 1


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        ("0", 0),
        ("120", 120),
        (" 7 ", 7),
        ("99999999999999999999", 999999999),
        ("Fri, 20 Nov 2026 19:01:00 GMT", 60),
        ("Fri, 20 Nov 2026 18:00:00 GMT", 0),
        ("Friday, 20-Nov-26 19:01:00 GMT", 60),
    ],
)
def test_retry_after_is_parsed(status: int, value: str, wait_s: float) -> None:
    error = error_of(status, {"retry-after": value}, b"", NOW)

    assert isinstance(error, Throttled)
    assert error.cause == "throttled"
    assert error.retry_after_s == wait_s


@pytest.mark.parametrize("value", [None, "", "soon", "-5", "1.5", "٣", "Fri, 99 Nov 2026"])
def test_invalid_retry_after_is_ignored(value: str | None) -> None:
    assert retry_after_s(value, NOW) is None


@given(st.text(st.characters(max_codepoint=0x2FF), max_size=60) | hostile_text)
def test_any_header_is_parsed_or_ignored(value: str) -> None:
    timestamp = http_date(value)
    wait_s = retry_after_s(value, NOW)

    assert timestamp is None or timestamp.tzinfo is not None
    assert wait_s is None or wait_s >= 0


@given(st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)))  # noqa: DTZ001
def test_an_http_date_is_parsed(timestamp: datetime) -> None:
    text = timestamp.strftime("%a, %d %b %Y %H:%M:%S GMT")

    assert http_date(text) == timestamp.replace(microsecond=0)


def test_an_http_date_with_any_offset_is_converted() -> None:
    assert http_date("Fri, 20 Nov 2026 20:00:00 +0100") == NOW
    assert http_date("Fri, 20 Nov 2026 19:00:00 -0000") == NOW
    assert http_date("Fri, 20 Nov 2026 19:00:00") == NOW


def body(**problem: object) -> bytes:
    return json.dumps(problem).encode()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the service refuses the call (status 403)"),
        (b"not json", "the service refuses the call (status 403)"),
        (b"[]", "the service refuses the call (status 403)"),
        (body(title="Forbidden"), "Forbidden (status 403)"),
        (body(title="Forbidden", detail="not your venue"), "not your venue (status 403)"),
        (
            body(detail="bad", errors={"locationId": ["too long", "unknown"]}),
            "bad; locationId: too long, unknown (status 403)",
        ),
        (body(detail="a\x1b[2J\nb"), "a [2J b (status 403)"),
        (body(detail="x" * 5000), "x" * 300 + " (status 403)"),
        (body(detail=7), "the service refuses the call (status 403)"),
    ],
)
def test_a_refusal_is_described_even_if_its_body_is_invalid(content: bytes, words: str) -> None:
    error = error_of(403, JSON, content, NOW)

    assert isinstance(error, Refused)
    assert str(error) == words


def test_a_refusal_has_the_status_and_code_of_the_reply() -> None:
    error = error_of(403, JSON, body(code="read_only_key"), NOW)

    assert isinstance(error, Refused)
    assert (error.status, error.code) == (403, "read_only_key")


def test_a_redirect_error_contains_the_shortened_location() -> None:
    error = error_of(302, {"location": "https://portal.example/" + "x" * 999}, b"", NOW)

    assert str(error).startswith("redirected (302) to https://portal.example/")
    assert len(str(error)) <= 300


@given(
    st.integers(200, 599),
    st.dictionaries(
        st.sampled_from(("content-type", "retry-after", "location", "date")), hostile_text
    ),
    st.binary(max_size=200) | st.builds(lambda t: body(detail=t, code=t), st.text()),
)
def test_any_reply_becomes_success_or_an_error(
    status: int, headers: dict[str, str], content: bytes
) -> None:
    error = error_of(status, headers, content, NOW)

    assert error is not None or status < 300
    # The error of a redirect can quote unprintable characters of the Location header.
    assert error is None or status < 400 or str(error).isprintable()


@pytest.mark.parametrize(
    ("status", "kind"), [(401, CredentialRefused), (413, BodyTooLarge), (422, BodyRejected)]
)
def test_an_error_contains_the_detail_of_the_reply(status: int, kind: type[ServiceError]) -> None:
    error = error_of(status, JSON, body(detail="because"), NOW)

    assert isinstance(error, kind)
    assert str(error) == f"because (status {status})"
