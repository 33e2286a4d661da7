"""Every way the service says no, and the `application/problem+json` body that says it (RFC 9457).

`controlplane.operation.operation` lists the codes with their statuses.
"""

from collections.abc import Mapping
from http import HTTPStatus

from agent.wire.codec import encode
from agent.wire.problem import MEDIA_TYPE, Problem

__all__ = ["MEDIA_TYPE", "Refusal", "problem_body"]

TYPE_PREFIX = "urn:venue-control:problem:"


class Refusal(Exception):
    """An answer other than success. ``errors`` maps dotted wire names to messages."""

    def __init__(
        self,
        status: HTTPStatus,
        code: str,
        detail: str,
        *,
        errors: Mapping[str, tuple[str, ...]] | None = None,
        headers: Mapping[str, str] | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = errors
        self.headers = dict(headers or {})
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle: of an exception only its text would be."""
        values = (self.status, self.code, self.detail, self.errors, self.headers)
        return _refusal, values


def _refusal(
    status: HTTPStatus,
    code: str,
    detail: str,
    errors: Mapping[str, tuple[str, ...]] | None,
    headers: Mapping[str, str],
) -> Refusal:
    return Refusal(status, code, detail, errors=errors, headers=headers)


def problem_body(refusal: Refusal, *, path: str, trace_id: str) -> bytes:
    problem = Problem(
        title=refusal.status.phrase,
        type=TYPE_PREFIX + refusal.code,
        instance=path,
        trace_id=trace_id,
        status=refusal.status.value,
        code=refusal.code,
        detail=refusal.detail,
        errors=None if refusal.errors is None else dict(refusal.errors),
    )
    return encode(problem)


def invalid_request(detail: str) -> Refusal:
    return Refusal(HTTPStatus.BAD_REQUEST, "invalid_request", detail)


def invalid_field(name: str, message: str) -> Refusal:
    return validation_error({name: (message,)})


def validation_error(errors: Mapping[str, tuple[str, ...]], detail: str = "") -> Refusal:
    return Refusal(
        HTTPStatus.BAD_REQUEST,
        "validation_error",
        detail or "the body does not fit the contract",
        errors=errors,
    )


def unauthenticated(realm: str = "remoteControl") -> Refusal:
    return Refusal(
        HTTPStatus.UNAUTHORIZED,
        "unauthenticated",
        "a valid API key is needed: Authorization: Bearer <API key>, or the session cookie",
        headers={"WWW-Authenticate": f'Bearer realm="{realm}"'},
    )


def read_only_key() -> Refusal:
    return Refusal(HTTPStatus.FORBIDDEN, "read_only_key", "this API key has no write grant")


def session_required() -> Refusal:
    return Refusal(
        HTTPStatus.FORBIDDEN, "session_required", "only who is signed in may do this, no API key"
    )


def manager_required() -> Refusal:
    return Refusal(
        HTTPStatus.FORBIDDEN,
        "manager_required",
        "only an owner or manager of the whole organization may do this, or a key that writes"
        " at all its locations",
    )


def foreign_location() -> Refusal:
    return Refusal(
        HTTPStatus.FORBIDDEN, "foreign_location", "this API key has no access to the location"
    )


def not_found(thing: str) -> Refusal:
    """``thing`` is one word: device, binding, challenge, request, report, token."""
    return Refusal(
        HTTPStatus.NOT_FOUND, f"{thing}_not_found", f"there is no such {thing.replace('_', ' ')}"
    )


def conflict(code: str, detail: str) -> Refusal:
    return Refusal(HTTPStatus.CONFLICT, code, detail)


def body_too_large(limit_bytes: int) -> Refusal:
    return Refusal(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "body_too_large",
        f"the body is larger than {limit_bytes} bytes",
    )


def rate_limited(wait_s: int) -> Refusal:
    return Refusal(
        HTTPStatus.TOO_MANY_REQUESTS,
        "rate_limited",
        f"too many requests with this API key, wait {wait_s} s",
        headers={"Retry-After": str(wait_s)},
    )


def unavailable(detail: str, wait_s: int = 5) -> Refusal:
    return Refusal(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "unavailable",
        detail,
        headers={"Retry-After": str(wait_s)},
    )


def internal_error() -> Refusal:
    return Refusal(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "internal_server_error",
        "the service failed to answer; the trace id names the entry in its log",
    )
