"""How the agent protocol says no before JSON-RPC begins: ``{error}`` (contract: Errors)."""

import json
import re
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from controlplane.operation.errors import Refusal

PATH: Final = "/api/mcp/v1"
METADATA_PATH: Final = f"/.well-known/oauth-protected-resource{PATH}"
"""Where RFC 9728 has the metadata of the resource at `PATH`."""
_HOST: Final = re.compile(r"[A-Za-z0-9.\-]{1,253}(:\d{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:\d{1,5})?")
_LOOPBACK: Final = re.compile(
    r"https?://(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?", re.IGNORECASE
)


def refusal_reply(refusal: Refusal) -> Response:
    body = json.dumps({"error": refusal.detail})
    return Response(body, refusal.status, refusal.headers, "application/json")


def unauthorized(request: Request, origin: str | None) -> Refusal:
    """Say where a client learns how to get a credential (RFC 9728, section 5.1).

    ``origin`` is `Settings.origin`.
    """
    metadata = f"{origin}{METADATA_PATH}" if origin else metadata_url(request)
    return Refusal(
        HTTPStatus.UNAUTHORIZED,
        "unauthenticated",
        "a valid bearer credential is needed: Authorization: Bearer <API key or OAuth token>",
        headers={"WWW-Authenticate": f'Bearer resource_metadata="{metadata}"'},
    )


def metadata_url(request: Request) -> str:
    """Return the metadata's address at the origin that the caller used.

    A caller that lies about the origin, or about TLS before a proxy, misleads itself only.
    """
    host = request.headers.get("host", "")
    if not _HOST.fullmatch(host):
        host = "localhost"
    is_tls = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto", ""))
    return f"{'https' if is_tls else 'http'}://{host}{METADATA_PATH}"


def require_no_web_page(request: Request) -> None:
    """Refuse what a web page sends, but for one on this machine.

    A page whose name was made to lead here would otherwise reach a service on loopback (MCP,
    Streamable HTTP, security warning). Agents are no pages, and browsers name the page.
    """
    origin = request.headers.get("origin")
    if origin is not None and not _LOOPBACK.fullmatch(origin):
        raise Refusal(
            HTTPStatus.FORBIDDEN, "foreign_origin", "web pages of other origins are not served here"
        )
