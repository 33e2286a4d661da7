"""OAuth metadata: paths, the protected resource and discovery documents (RFC 8414, RFC 9728)."""

from typing import Any, Final

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
"""The paths that return HTML pages, also for errors."""
GRANT_TYPES: Final = ("authorization_code", "refresh_token")


def is_oauth(path: str) -> bool:
    """Return whether a path belongs to OAuth, even if no operation has this path."""
    return path.startswith((BASE + "/", SERVER_METADATA, RESOURCE_METADATA))


def resource_of(issuer: str) -> str:
    """Return the only resource that tokens are valid for (RFC 8707)."""
    return issuer + RESOURCE_PATH


def server_metadata(issuer: str) -> dict[str, Any]:
    """Return the authorization server metadata (RFC 8414). No scopes are defined."""
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
    """Return the protected resource metadata (RFC 9728)."""
    return {
        "resource": resource_of(issuer),
        "authorization_servers": [issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": "Venue control: agent protocol",
    }
