"""Who gives out tokens and for what: the issuer, its one resource, and the documents that say so.

The issuer is the origin that browsers know (``--origin``), else the one that is called. Without TLS
it serves programs on the same machine only.
"""

import ipaddress
import re
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.requests import Request

from controlplane.web.core import Core
from controlplane.operation.errors import Refusal

RESOURCE_PATH: Final = "/api/mcp/v1"
BASE: Final = "/api/auth/oauth2"
AUTHORIZE: Final = f"{BASE}/authorize"
SIGN_IN: Final = f"{BASE}/sign-in"
TOKEN: Final = f"{BASE}/token"
REGISTER: Final = f"{BASE}/register"
REVOKE: Final = f"{BASE}/revoke"
SERVER_METADATA: Final = "/.well-known/oauth-authorization-server"
RESOURCE_METADATA: Final = "/.well-known/oauth-protected-resource"
PAGES: Final = frozenset({AUTHORIZE, SIGN_IN})
GRANT_TYPES: Final = ("authorization_code", "refresh_token")
_HOST: Final = re.compile(r"[a-z0-9.-]{1,253}(:[0-9]{1,5})?|\[[0-9a-f:.]{2,45}\](:[0-9]{1,5})?")


def is_oauth(path: str) -> bool:
    """Tell whether a path is of OAuth, served or not."""
    return path.startswith((BASE + "/", SERVER_METADATA, RESOURCE_METADATA))


def issuer_of(core: Core, request: Request) -> str:
    """Return the issuer (RFC 8414, 2), or refuse a connection that others could read."""
    origin = core.settings.origin or f"{request.url.scheme}://{request.headers.get('host', '')}"
    origin = origin.lower()
    if not _is_private(origin):
        raise Refusal(
            HTTPStatus.BAD_REQUEST,
            "insecure_transport",
            "OAuth needs https: start the service with --origin https://...",
        )
    return origin


def resource_of(issuer: str) -> str:
    """Return the one resource that tokens are good for (RFC 8707)."""
    return issuer + RESOURCE_PATH


def server_metadata(issuer: str) -> dict[str, Any]:
    """Return the document of RFC 8414. There are no scopes, so none are named."""
    return {
        "issuer": issuer,
        "authorization_endpoint": issuer + AUTHORIZE,
        "token_endpoint": issuer + TOKEN,
        "registration_endpoint": issuer + REGISTER,
        "revocation_endpoint": issuer + REVOKE,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": list(GRANT_TYPES),
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "protected_resources": [resource_of(issuer)],
    }


def resource_metadata(issuer: str) -> dict[str, Any]:
    """Return the document of RFC 9728."""
    return {
        "resource": resource_of(issuer),
        "authorization_servers": [issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": "Venue control: agent protocol",
    }


def _is_private(origin: str) -> bool:
    parts = urlsplit(origin) if _HOST.fullmatch(origin.partition("://")[2]) else None
    if parts is None or not parts.hostname:
        return False
    if parts.scheme == "https" or parts.hostname == "localhost":
        return True
    try:
        return ipaddress.ip_address(parts.hostname).is_loopback
    except ValueError:
        return False
