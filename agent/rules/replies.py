"""Classifies a reply of the service: an error, or None for a success.

The contract defines no bodies of errors for the device's operations, so the class of an error
depends on the status and the headers, and not on the body. The text of the error comes from a
problem body (RFC 9457), if there is one. A page of HTML never comes from the service, but from a
captive portal, a proxy or a wrong address. Therefore a page with a status such as 403 does not
count as a decision about this device.
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
"""Statuses that can mean that the service refuses this device, and not just the body of a call."""
TRY_AGAIN: Final = frozenset({408, 425})
"""Request Timeout and Too Early: the same call can succeed later."""
SENT_BY_GATEWAYS: Final = frozenset({408, 413, 425, 429})
"""Statuses that gateways in front of the service send, often with a page of HTML."""


def error_of(
    status: int, headers: Mapping[str, str], body: bytes, now: datetime
) -> ServiceError | None:
    """Return the error of a reply, or None if the reply is a success.

    The names of ``headers`` are in lower case; ``body`` may be cut.
    """
    is_html = "text/html" in headers.get("content-type", "").lower()
    if status == HTTPStatus.UNAUTHORIZED:
        return CredentialRefused(
            _describe(status, body, "the service does not accept this API key")
        )
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        return ServiceUnavailable("proxy", "the proxy requires a user and a password (407)")
    if 300 <= status < 400:
        target = headers.get("location", "an unnamed address")
        return ServiceUnavailable("redirect", _short(f"redirected ({status}) to {target}"))
    if is_html and status < 500 and status not in SENT_BY_GATEWAYS:
        return ServiceUnavailable("captive-portal", f"the reply is a web page (status {status})")
    if status < 300:
        return None
    return _failure(status, headers, body, now)


def _failure(status: int, headers: Mapping[str, str], body: bytes, now: datetime) -> ServiceError:
    requested_s = retry_after_s(headers.get("retry-after"), now)
    if status == HTTPStatus.TOO_MANY_REQUESTS or (
        status == HTTPStatus.SERVICE_UNAVAILABLE and requested_s is not None
    ):
        return Throttled(_describe(status, body, "the service requires a wait"), requested_s)
    if status >= 500:
        return ServiceUnavailable("server-error", f"the service failed (status {status})")
    if status in TRY_AGAIN:
        return ServiceUnavailable("timeout", f"the call must be repeated (status {status})")
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return BodyTooLarge(
            _describe(status, body, "the service does not accept a body of this size")
        )
    if status in REFUSALS:
        problem = _problem(body)
        description = _describe(status, body, "the service refuses the call")
        return Refused(status, problem.code, description)
    return BodyRejected(status, _describe(status, body, "the service rejects the request"))


def retry_after_s(value: str | None, now: datetime) -> float | None:
    """Parse Retry-After (RFC 9110, section 10.2.3): seconds or an HTTP date. None if invalid."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])  # nine digits are enough: `rules.retry` limits the wait
    timestamp = http_date(text)
    return None if timestamp is None else max(0.0, (timestamp - now).total_seconds())


def http_date(value: str | None) -> datetime | None:
    """Parse an HTTP date (RFC 9110, section 5.6.7) as an aware time, or None."""
    if not value:
        return None
    try:
        at_time = email.utils.parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return at_time.replace(tzinfo=UTC) if at_time.tzinfo is None else at_time


def _problem(body: bytes) -> Problem:
    try:
        return decode(body, Problem)
    except ValidationError:
        return Problem()


def _describe(status: int, body: bytes, fallback: str) -> str:
    """Return the service's description of a failure, or ``fallback``; printable and short."""
    problem = _problem(body)
    parts = [problem.detail or problem.title or fallback]
    for field, messages in (problem.errors or {}).items():
        parts.append(f"{field}: {', '.join(messages)}")
    return f"{_short(without_controls('; '.join(parts)))} (status {status})"


def _short(text: str) -> str:
    """Redact untrusted text and cut it. Redaction comes first: it does not detect a cut secret."""
    return redact(text)[:DETAIL_MAX]
