"""What a reply of the service means: its status and headers → an error class, or none.

The contract shows no error bodies for the facade, so only the status decides; a problem body
(RFC 9457), where there is one, supplies the words. A page of HTML is never the service: it is a
captive portal, a proxy or a wrong address, and must not be taken for a verdict on this device.
"""

import email.utils
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

from agent.errors import (
    BodyRejected,
    BodyTooLarge,
    CredentialRefused,
    Refused,
    ServiceError,
    ServiceUnavailable,
    Throttled,
)
from agent.redaction.known import redact
from agent.wire.codec import decode
from agent.wire.controls import without_controls
from agent.wire.problem import Problem
from agent.wire.validation import ValidationError

DETAIL_MAX: Final = 300
REFUSALS: Final = frozenset({403, 404, 409, 410})
TRY_AGAIN: Final = frozenset({408, 425})
SAID_BY_GATEWAYS: Final = frozenset({408, 413, 425, 429})
"""What a gateway before the service answers in its name, often as a page of HTML."""


def error_of(
    status: int, headers: Mapping[str, str], body: bytes, now: datetime
) -> ServiceError | None:
    """Return the error a reply stands for, or None when its body is worth reading.

    ``headers`` are looked up in lower case; ``body`` may be cut.
    """
    is_html = "text/html" in headers.get("content-type", "").lower()
    if status == HTTPStatus.UNAUTHORIZED:
        return CredentialRefused(_words(status, body, "the service does not know this API key"))
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        return ServiceUnavailable("proxy", "the proxy asks for a user and a password (407)")
    if 300 <= status < 400:
        target = headers.get("location", "an unnamed address")
        return ServiceUnavailable("redirect", _short(f"redirected ({status}) to {target}"))
    if is_html and status < 500 and status not in SAID_BY_GATEWAYS:
        return ServiceUnavailable("captive-portal", f"a web page was answered (status {status})")
    if status < 300:
        return None
    return _failure(status, headers, body, now)


def _failure(status: int, headers: Mapping[str, str], body: bytes, now: datetime) -> ServiceError:
    wish = retry_after_s(headers.get("retry-after"), now)
    if status == HTTPStatus.TOO_MANY_REQUESTS or (
        status == HTTPStatus.SERVICE_UNAVAILABLE and wish is not None
    ):
        return Throttled(_words(status, body, f"the service asks to wait (status {status})"), wish)
    if status >= 500:
        return ServiceUnavailable("server-error", f"the service failed (status {status})")
    if status in TRY_AGAIN:
        return ServiceUnavailable("timeout", f"the service gave up waiting (status {status})")
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return BodyTooLarge(_words(status, body, "the service does not take a body this large"))
    if status in REFUSALS:
        problem = _problem(body)
        return Refused(status, problem.code, _words(status, body, "the service refuses"))
    return BodyRejected(status, _words(status, body, "the service rejects the request"))


def retry_after_s(value: str | None, now: datetime) -> float | None:
    """Read Retry-After (RFC 9110, section 10.2.3): seconds or an HTTP date. Else None."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    moment = http_date(text)
    return None if moment is None else max(0.0, (moment - now).total_seconds())


def http_date(value: str | None) -> datetime | None:
    """Read an HTTP date (RFC 9110, section 5.6.7) as an aware moment, or None."""
    if not value:
        return None
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _problem(body: bytes) -> Problem:
    try:
        return decode(body, Problem)
    except ValidationError:
        return Problem()


def _words(status: int, body: bytes, otherwise: str) -> str:
    """Return the service's own words for a failure, printable and short."""
    problem = _problem(body)
    parts = [problem.detail or problem.title or otherwise]
    for field, messages in (problem.errors or {}).items():
        parts.append(f"{field}: {', '.join(messages)}")
    return f"{_short(without_controls('; '.join(parts)))} (status {status})"


def _short(text: str) -> str:
    """Cut what a stranger wrote, redacted before: half a secret looks like none."""
    return redact(text)[:DETAIL_MAX]
