"""Replies for refusals, in the format of the interface that was called.

The facade sends problems (RFC 9457). The retail API sends no body for 401, 403 and 404, and a
problem with the codes of its own contract for other statuses. OAuth endpoints send errors as in
RFC 6749, section 5.2. Sign-in pages and OAuth pages send a page. The agent protocol sends
``{"error": …}``. JSON-RPC errors are not refusals.
"""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from starlette.responses import JSONResponse, Response

from agent.wire.codec import encode
from agent.wire.problem import MEDIA_TYPE, Problem
from controlplane.accounts.oauth.metadata import PAGES, RESOURCE_PATH, is_oauth
from controlplane.operation.errors import Refusal
from controlplane.retail.routes import is_retail
from controlplane.web.accounts.forms import SIGN_IN_PAGE
from controlplane.web.accounts.oidc.links import PREFIX as OIDC
from controlplane.web.accounts.plain_pages import render

TYPE_PREFIX: Final = "urn:venue-control:problem:"
RETAIL_EMPTY: Final = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}
"""Statuses that the retail API sends without a body."""
_RETAIL_CODES: Final = {
    "validation_error",
    "invalid_request",
    "invalid_cursor",
    "existing_entity_conflict",
    "internal_server_error",
}
"""The codes that the retail API has in common with the facade."""
_RETAIL_CODE_BY_STATUS: Final[Mapping[int, str | None]] = {429: "unexpected_error", 503: None}
"""The codes that the retail API sends with these statuses, whatever the code of the refusal. None
means that it sends no code."""
_OAUTH_ERRORS: Final[Mapping[int, str]] = {
    429: "temporarily_unavailable",
    503: "temporarily_unavailable",
    500: "server_error",
}
_INDEX: Final = re.compile(r"\.(\d+)(?=\.|$)")
"""The index of a list element in the name of a field. The facade writes ``.0``, and the retail API
``[0]``."""


def reply_to(refusal: Refusal, path: str, trace_id: str) -> Response:
    """Return the reply for a refusal of a call to ``path``."""
    if is_oauth(path):
        return _oauth_reply(refusal, path)
    if path == SIGN_IN_PAGE or path.startswith((SIGN_IN_PAGE + "/", OIDC)):
        return render(
            "sign_in_problem.html",
            forms="'none'",
            refusal=refusal,
            detail=refusal.detail,
            action=SIGN_IN_PAGE,
        )
    if path == RESOURCE_PATH:  # the agent protocol, which OAuth protects
        return JSONResponse({"error": refusal.detail}, refusal.status, refusal.headers)
    if is_retail(path) and refusal.status in RETAIL_EMPTY:
        return Response(status_code=refusal.status, headers=refusal.headers)
    code: str | None = refusal.code
    errors = refusal.errors
    if is_retail(path):
        code = retail_code(refusal.status, refusal.code)
        errors = {
            _INDEX.sub(r"[\1]", name): messages for name, messages in (errors or {}).items()
        } or None
    problem = Problem(
        title=refusal.status.phrase,
        type=TYPE_PREFIX + refusal.code,
        instance=path,
        trace_id=trace_id,
        status=refusal.status.value,
        code=code,
        detail=refusal.detail,
        reason=refusal.reason,
        errors=None if errors is None else dict(errors),
    )
    return Response(encode(problem), refusal.status, refusal.headers, MEDIA_TYPE)


def retail_code(status: int, code: str) -> str | None:
    """Return the code that the retail API sends for a refusal, or None if it sends none."""
    if status in _RETAIL_CODE_BY_STATUS:
        return _RETAIL_CODE_BY_STATUS[status]
    return code if code in _RETAIL_CODES else "invalid_request"


def _oauth_reply(refusal: Refusal, path: str) -> Response:
    if path in PAGES:
        return render("oauth_refused.html", forms="'none'", refusal=refusal, detail=refusal.detail)
    body = {
        "error": _OAUTH_ERRORS.get(refusal.status, "invalid_request"),
        "error_description": refusal.detail,
    }
    return JSONResponse(body, refusal.status, refusal.headers)
