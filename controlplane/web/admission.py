"""Admission of a call: method, credential, limits, permission, media type and body."""

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from controlplane.accounts.oauth.secrets import parse_access_token
from controlplane.accounts.throttle import network_of
from controlplane.operation.bodies import parse_body
from controlplane.operation.body_reader import LARGE_BYTES
from controlplane.operation.caller import Caller
from controlplane.operation.errors import (
    Refusal,
    body_too_large,
    method_not_allowed,
    read_only_key,
    session_required,
    unauthenticated,
)
from controlplane.operation.permissions import caller_of_access_token, hash_secret
from controlplane.web.accounts.cookies import session_caller
from controlplane.web.core import Core
from controlplane.web.protocol import client_address

Authenticate = Callable[[Core, Request, bool], Awaitable[Caller]]
"""Returns the caller of a request. The last argument is whether the operation writes. Raises a
refusal if the credential is missing or invalid."""
Parsed = TypeVar("Parsed")
POST: Final = ("POST",)
READ: Final = ("GET", "HEAD")
FORM: Final = ("GET", "HEAD", "POST")
SHORT_BYTES: Final = 4_096
"""Maximum size of a body that is parsed in the event loop, which takes less than 2 ms. A body of
`LARGE_BYTES` would block all other calls for 20 ms (`parse_charged`)."""
SMALL_MAX_BYTES: Final = 4096
"""Default limit of `read_small`. Bodies with a password, code or token are smaller than this."""
_BEARER: Final = re.compile(r"Bearer +(\S+)", re.IGNORECASE)
_API_KEY: Final = re.compile(r"vck_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class Handler:
    """An ASGI endpoint that sends the response of a function. It serves only ``methods``."""

    core: Core
    respond: Callable[[Core, Request], Awaitable[Response]]
    methods: tuple[str, ...] = POST

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        require_method(request, self.methods)
        response = await self.respond(self.core, request)
        await response(scope, receive, send)


# ---------------------------------------------------------------------------- credentials


async def by_key_or_session(core: Core, request: Request, writes: bool) -> Caller:
    """Authenticate with an API key or a session cookie. With an ``Authorization`` header, the
    cookie is not used, even if the header contains no valid key."""
    header = request.headers.get("authorization")
    if header is None:
        return await session_caller(core, request, writes=writes)
    key = parse_api_key(header)
    if key is None:
        raise unauthenticated()
    return await _by_key(core, key)


async def by_key_or_token(core: Core, request: Request, _writes: bool) -> Caller:
    """Authenticate with an API key or an OAuth token. Unlike API keys, tokens are not cached."""
    header = request.headers.get("authorization")
    key = parse_api_key(header)
    if key is not None:
        return await _by_key(core, key)
    token = parse_access_token(header)
    if token is None:
        raise unauthenticated()
    now, token_hash = core.clock(), hash_secret(token)
    caller = await core.read(lambda session: caller_of_access_token(session, token_hash, now))
    if caller is None:
        raise unauthenticated()
    return caller


def parse_api_key(header: str | None) -> str | None:
    """Return the API key in an ``Authorization`` header (RFC 6750), or None if there is none."""
    match = _BEARER.fullmatch((header or "").strip())
    if match is None or _API_KEY.fullmatch(match[1]) is None:
        return None
    return match[1]


async def _by_key(core: Core, key: str) -> Caller:
    caller = core.keys.find(key)
    if caller is None:
        caller = await core.key_reader.caller(key)
        if caller is None:
            raise unauthenticated()
        core.keys.keep(key, caller)
    core.keys.note_use(caller.key_id, core.clock())
    return caller


def address_of(core: Core, request: Request) -> str:
    """Return the client's IP address (`client_address`)."""
    peer = request.client.host if request.client else ""
    return client_address(peer, request.headers.raw, core.settings.trusted_proxies)


def client_network(core: Core, request: Request) -> str:
    """Return the client's network, to which rate limits apply (`network_of`)."""
    return network_of(address_of(core, request))


# ---------------------------------------------------------------------------- admission


async def admit(
    core: Core,
    request: Request,
    *,
    writes: bool,
    authenticate: Authenticate = by_key_or_session,
    methods: Sequence[str] = POST,
    requires_session: bool = False,
    checks_role: bool = False,
    has_body: bool = True,
) -> Caller:
    """Return the caller of a request.

    Args:
        writes: whether the operation changes anything. If it does, a caller without write access is
            refused. A session is not refused if ``requires_session`` or ``checks_role`` is set.
        requires_session: whether the operation requires a signed-in user, of any role.
        checks_role: whether the operation itself checks the role of a signed-in user.
        has_body: whether the operation takes a JSON body.

    Raises:
        Refusal: the call is not admitted.
    """
    require_method(request, methods)
    caller = await authenticate(core, request, writes)
    request.state.caller = caller
    core.fairness.admit(caller)
    if requires_session and caller.kind != "session":
        raise session_required()
    is_checked_by_operation = requires_session or (checks_role and caller.kind == "session")
    if writes and not caller.can_write and not is_checked_by_operation:
        raise read_only_key()
    if has_body:
        require_media_type(request.headers)
    return caller


def require_method(request: Request, methods: Sequence[str]) -> None:
    if request.method not in methods:
        verb = "is" if len(methods) == 1 else "are"
        detail = f"only {' and '.join(methods)} {verb} served here"
        raise method_not_allowed(", ".join(methods), detail)


def require_media_type(headers: Mapping[str, str], required: str = "application/json") -> None:
    media_type = headers.get("content-type", "").split(";")[0].strip().lower()
    if media_type != required:
        raise Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "invalid_request",
            f"the body must be {required}",
            headers={"Accept-Post": required},
        )


# ---------------------------------------------------------------------------- bodies


async def read_body(core: Core, request: Request, limit_bytes: int | None = None) -> bytes:
    """Return the body of a request.

    Args:
        limit_bytes: maximum size. The default is the configured limit for calls with a credential.

    Raises:
        Refusal: the body is too large or arrives too slowly.
    """
    limit = limit_bytes or core.settings.body_limit_bytes
    content_length = request.headers.get("content-length", "")
    # The first 20 digits are enough to exceed any limit.
    if content_length.isdecimal() and int(content_length[:20]) > limit:
        raise body_too_large(limit)
    body = bytearray()
    try:
        async with asyncio.timeout(core.settings.body_timeout_s):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise body_too_large(limit)
    except TimeoutError:
        raise Refusal(
            HTTPStatus.REQUEST_TIMEOUT,
            "body_timeout",
            f"the body did not arrive within {core.settings.body_timeout_s:g} s",
            headers={"Connection": "close"},
        ) from None
    return bytes(body)


async def read_model(core: Core, request: Request, caller: Caller, model: type[Parsed]) -> Parsed:
    """Return the JSON body of a request as ``model``. Raises a refusal if the body is invalid."""
    body = await read_body(core, request)
    parsed_body: Parsed = await parse_charged(core, caller, partial(parse_body, model), body)
    return parsed_body


async def read_small(
    core: Core, request: Request, model: type[Parsed], limit_bytes: int = SMALL_MAX_BYTES
) -> Parsed:
    """Return the small JSON body of a request as ``model``. Its parsing is not charged to a caller.

    Raises a refusal if the body is invalid.
    """
    return parse_body(model, await read_body(core, request, limit_bytes))


async def parse_charged(
    core: Core, caller: Caller, parse: Callable[[bytes], Any], body: bytes
) -> Any:
    """Return the parsed body. Raises a refusal if the body is invalid.

    A short body is parsed at once, and a longer one in a thread. This is not a database thread, so
    an invalid body is refused even if all database threads are busy. A large body is parsed in a
    separate process. The caller is charged for the processor time, but only a large body is charged
    to the limit for large bodies.
    """
    if len(body) <= LARGE_BYTES:
        times_s: list[float] = []
        timed_parse = core.timed(parse, times_s)
        try:
            is_short = len(body) <= SHORT_BYTES
            return timed_parse(body) if is_short else await core.parse(timed_parse, body)
        finally:
            core.fairness.charge(caller, sum(times_s), free_s=math.inf)
    result, took_s = await core.body_reader.read(parse, body)
    core.fairness.charge(caller, took_s)
    if isinstance(result, Refusal):
        raise result
    return result
