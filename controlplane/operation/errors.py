"""The refusals of the service.

`controlplane.operation.operation.CODES` lists the codes of the facade and the retail API by status.
"""

from collections.abc import Mapping
from http import HTTPStatus


class Refusal(Exception):
    """A reply other than success.

    Args:
        detail: what is wrong, and what to do.
        errors: messages by the path of the invalid field on the wire, such as ``devices.0.name``.
        reason: code of the cause of a conflict, such as ``duplicate_external_data_id``. Only the
            retail API sends it.
    """

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
        # Unpickling calls the class with these arguments.
        super().__init__(status, code, detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = errors
        self.headers = dict(headers or {})
        self.reason = reason

    def __str__(self) -> str:
        return self.detail


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


def unauthenticated(realm: str = "remoteControl", description: str = "") -> Refusal:
    """Return a refusal whose header contains ``description`` (RFC 6750, section 3).

    A description consists of printable ASCII characters without quotation marks and backslashes.
    """
    challenge = f'Bearer realm="{realm}"'
    if description:
        challenge += f', error="invalid_token", error_description="{description}"'
    return Refusal(
        HTTPStatus.UNAUTHORIZED,
        "unauthenticated",
        "the credential is missing or invalid: send Authorization: Bearer <API key>, or the session"
        " cookie",
        headers={"WWW-Authenticate": challenge},
    )


def read_only_key() -> Refusal:
    detail = "the API key or role has no write grant: use a key that was created with --write"
    return forbidden("read_only_key", detail)


def session_required() -> Refusal:
    detail = "this requires a signed-in user: API keys are not accepted"
    return forbidden("session_required", detail)


def manager_required() -> Refusal:
    return forbidden(
        "manager_required",
        "this requires an owner or manager of the whole organization, or an API key with a write"
        " grant for all its locations",
    )


def foreign_location() -> Refusal:
    return forbidden("foreign_location", "the API key or role has no access to the location")


def forbidden(code: str, detail: str) -> Refusal:
    return Refusal(HTTPStatus.FORBIDDEN, code, detail)


def foreign_origin(detail: str) -> Refusal:
    return forbidden("foreign_origin", detail)


def method_not_allowed(methods: str, detail: str) -> Refusal:
    """Return the refusal for a path that serves only ``methods``, which are joined by commas."""
    return Refusal(
        HTTPStatus.METHOD_NOT_ALLOWED, "method_not_allowed", detail, headers={"Allow": methods}
    )


def not_found(kind: str) -> Refusal:
    """Return the refusal for an unknown object. ``kind`` is its kind, such as ``device``."""
    return Refusal(HTTPStatus.NOT_FOUND, f"{kind}_not_found", f"there is no such {kind}")


def conflict(code: str, detail: str) -> Refusal:
    return Refusal(HTTPStatus.CONFLICT, code, detail)


def body_too_large(limit_bytes: int) -> Refusal:
    return Refusal(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "body_too_large",
        f"the body is larger than {limit_bytes} bytes",
    )


def rate_limited(wait_s: int, problem: str = "too many requests") -> Refusal:
    return Refusal(
        HTTPStatus.TOO_MANY_REQUESTS,
        "rate_limited",
        f"{problem}: wait {wait_s} s",
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
