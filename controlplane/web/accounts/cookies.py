"""The session cookie and the cookies of an unfinished sign-in, and protection against CSRF.

Browsers can send the session cookie with calls from pages of any site. Therefore calls from other
sites are refused. Calls that change anything must have an ``Origin`` header that names this
service.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

from controlplane.accounts import sessions
from controlplane.operation import permissions
from controlplane.operation.caller import Caller
from controlplane.operation.errors import foreign_origin, unauthenticated
from controlplane.web.core import Core

NAME: Final = "venue.session_token"
SECURE_PREFIX: Final = "__Secure-"
"""Prefix of the session cookie's name over TLS. Browsers accept a cookie with this prefix over TLS
only (RFC 6265bis, 4.1.3.1)."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}")
HOST_PREFIX: Final = "__Host-"
"""Over TLS, the cookies of an unfinished sign-in have this prefix. No other host of the domain can
set a cookie with this prefix."""
STEP_LIFETIME_S: Final = 600
"""Lifetime of the cookies of an unfinished sign-in."""
ORIGIN_MAX: Final = 200
"""Maximum length of an origin in a message."""


@dataclass(frozen=True, slots=True)
class Cookie:
    """A cookie of this service. Its name begins with ``secure_prefix`` over TLS."""

    name: str
    secure_prefix: str
    lifetime_s: int

    def header(self, core: Core, request: Request, value: str) -> str:
        """Return the ``Set-Cookie`` header for ``value``. An empty value deletes the cookie."""
        secure = "; Secure" if _is_secure(core, request) else ""
        return (
            f"{self._name(core, request)}={value}; Max-Age={self.lifetime_s if value else 0}; "
            f"Path=/; HttpOnly; SameSite=Lax{secure}"
        )

    def value(self, core: Core, request: Request) -> str:
        return request.cookies.get(self._name(core, request), "")

    def token(self, core: Core, request: Request) -> str | None:
        """Return the value if it is a token, and otherwise None."""
        value = self.value(core, request)
        return value if _TOKEN.fullmatch(value) else None

    def _name(self, core: Core, request: Request) -> str:
        return self.secure_prefix + self.name if _is_secure(core, request) else self.name


SESSION: Final = Cookie(NAME, SECURE_PREFIX, int(sessions.LIFETIME.total_seconds()))
PENDING: Final = Cookie("venue.pending_sign_in", HOST_PREFIX, STEP_LIFETIME_S)
"""The cookie of a sign-in that needs a second factor."""
FLOW: Final = Cookie("venue.sign_in_flow", HOST_PREFIX, STEP_LIFETIME_S)
"""The cookie of a sign-in at an identity provider."""


async def session_caller(core: Core, request: Request, *, writes: bool) -> Caller:
    """Return the caller of the session in the cookie. Raises a refusal if no session is valid."""
    token = SESSION.token(core, request)
    if token is None:
        raise unauthenticated()
    require_own_origin(core, request, requires_header=writes)
    session_match = await find_session(core, token)
    if session_match is None:
        raise unauthenticated()
    caller, last_used_at = session_match
    now = core.clock()
    if now - last_used_at >= sessions.TOUCHED_EVERY:
        await core.write(lambda session: sessions.touch(session, caller.key_id, now))
        request.state.set_cookie = SESSION.header(core, request, token)
    return caller


async def find_session(core: Core, token: str) -> tuple[Caller, datetime] | None:
    """Return the caller of a session, and when it was last used, or None if it is not valid."""
    now, token_hash = core.clock(), permissions.hash_secret(token)
    return await core.read(lambda session: permissions.caller_of_session(session, token_hash, now))


def require_own_origin(core: Core, request: Request, *, requires_header: bool) -> None:
    """Refuse calls that a browser makes for a page of a different site.

    With ``requires_header``, calls without an ``Origin`` header are refused as well. Browsers send
    this header with every ``POST`` (Fetch, 3.2).
    """
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    is_foreign = (site is not None and site != "same-origin") or (
        origin is not None and not _is_own(core, request, origin)
    )
    if is_foreign and site == "same-origin" and origin is not None and origin.isprintable():
        # The browser reports that the page is the service's own. The address that the service
        # assumes for itself is therefore wrong.
        raise foreign_origin(
            f"browsers reach this service at {origin[:ORIGIN_MAX]}: start it with --origin"
            f" {origin[:ORIGIN_MAX]}"
        )
    if is_foreign or (requires_header and origin is None):
        raise foreign_origin(
            "a call with the session cookie must come from this service's own pages"
        )


def _is_own(core: Core, request: Request, origin: str) -> bool:
    own_origin = core.settings.origin or f"{request.url.scheme}://{request.headers.get('host', '')}"
    return origin.lower() == own_origin.lower()


def _is_secure(core: Core, request: Request) -> bool:
    origin = core.settings.origin
    scheme = request.url.scheme if origin is None else urlsplit(origin).scheme
    return scheme == "https"
