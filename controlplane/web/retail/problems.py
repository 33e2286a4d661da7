"""How the retail API says no (contract: Errors): no body for 401, 403 and 404, else a problem.

Inside, it refuses as the facade does; here its answers get the words of the retail document.
"""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from starlette.responses import Response

from agent.wire.codec import encode
from agent.wire.problem import Problem
from controlplane.operation.errors import MEDIA_TYPE, TYPE_PREFIX, Refusal

EMPTY: Final = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}
KNOWN_CODES: Final = {
    "validation_error",
    "invalid_request",
    "invalid_cursor",
    "existing_entity_conflict",
    "internal_server_error",
}
_CODES: Final[Mapping[HTTPStatus, str | None]] = {
    HTTPStatus.TOO_MANY_REQUESTS: "unexpected_error",
    HTTPStatus.SERVICE_UNAVAILABLE: None,
}
_INDEX: Final = re.compile(r"\.(\d+)(?=\.|$)")


def retail_problem(refusal: Refusal, path: str, trace_id: str) -> Response:
    """Return the reply that says no."""
    if refusal.status in EMPTY:
        return Response(status_code=refusal.status, headers=refusal.headers)
    errors = {_INDEX.sub(r"[\1]", name): said for name, said in (refusal.errors or {}).items()}
    problem = Problem(
        title=refusal.status.phrase,
        type=TYPE_PREFIX + refusal.code,
        instance=path,
        trace_id=trace_id,
        status=refusal.status.value,
        code=_code(refusal),
        detail=refusal.detail,
        reason=refusal.reason,
        errors=errors or None,
    )
    return Response(
        encode(problem),
        status_code=refusal.status,
        headers=refusal.headers,
        media_type=MEDIA_TYPE,
    )


def _code(refusal: Refusal) -> str | None:
    if refusal.status in _CODES:
        return _CODES[refusal.status]
    return refusal.code if refusal.code in KNOWN_CODES else "invalid_request"
