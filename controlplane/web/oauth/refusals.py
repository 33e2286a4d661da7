"""How OAuth says no: as RFC 6749, 5.2 has it, and as a page where a person reads it.

Inside, it refuses as the facade does; here its answers get the words of OAuth.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from starlette.responses import JSONResponse, Response

from controlplane.accounts.oauth.metadata import PAGES
from controlplane.operation.errors import Refusal
from controlplane.web.oauth.pages import refused_page

_CODES: Final[Mapping[HTTPStatus, str]] = {
    HTTPStatus.TOO_MANY_REQUESTS: "temporarily_unavailable",
    HTTPStatus.SERVICE_UNAVAILABLE: "temporarily_unavailable",
    HTTPStatus.INTERNAL_SERVER_ERROR: "server_error",
}


def oauth_problem(refusal: Refusal, path: str) -> Response:
    """Return the reply that says no."""
    if path in PAGES:
        return refused_page(refusal.detail, refusal.status, refusal.headers)
    body = {
        "error": _CODES.get(refusal.status, "invalid_request"),
        "error_description": refusal.detail,
    }
    return JSONResponse(body, refusal.status, refusal.headers)
