"""What every call passes before it reaches its operation: method, key, rate, type, size."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus

from starlette.requests import Request

from controlplane.accounts.key_store import recognise
from controlplane.accounts.oauth.secrets import hash_secret, parse_access_token
from controlplane.operation.api_keys import parse_bearer
from controlplane.operation.caller import Caller
from controlplane.operation.errors import (
    Refusal,
    body_too_large,
    read_only_key,
    session_needed,
    unauthenticated,
)
from controlplane.operation.permissions import of_access_token
from controlplane.web.accounts.cookies import signed_in
from controlplane.web.core import Core


async def admit(
    core: Core,
    request: Request,
    *,
    writes: bool,
    of_person: bool = False,
    of_agent: bool = False,
    judges_role: bool = False,
    has_body: bool = True,
) -> Caller:
    """Return who is calling, or raise the refusal.

    ``of_person``: only who is signed in may, whatever their role: it is about themselves.
    ``of_agent``: it is the agent protocol, which takes OAuth tokens beside API keys, and no cookie.
    ``judges_role``: the operation judges by itself whether who is signed in may write.
    ``has_body``: without it no type of a body is asked for.
    """
    require_method(request, "POST")
    if of_agent:
        caller = await _authenticate_agent(core, request)
    else:
        caller = await _authenticate(core, request, writes=writes)
    request.state.caller = caller
    core.fairness.admit(caller)
    if of_person and caller.kind != "session":
        raise session_needed()
    is_judged_there = of_person or (judges_role and caller.kind == "session")
    if writes and not caller.can_write and not is_judged_there:
        raise read_only_key()
    if has_body:
        require_json(request.headers)
    return caller


async def read_body(core: Core, request: Request, limit_bytes: int | None = None) -> bytes:
    """Return the body, if it is not too large and does not come too slowly.

    ``limit_bytes`` is less than for who has a key, where nobody has shown one.
    """
    limit = limit_bytes or core.settings.body_limit_bytes
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > limit:
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


def require_method(request: Request, *methods: str) -> None:
    if request.method not in methods:
        raise Refusal(
            HTTPStatus.METHOD_NOT_ALLOWED,
            "method_not_allowed",
            f"only {' and '.join(methods)} is served here",
            headers={"Allow": ", ".join(methods)},
        )


async def _authenticate(core: Core, request: Request, *, writes: bool) -> Caller:
    """Who sends a key is whose key it is, also beside a cookie: a browser adds that by itself."""
    header = request.headers.get("authorization")
    if header is None:
        return await signed_in(core, request, writes=writes)
    key = parse_bearer(header)
    if key is None:
        raise unauthenticated()
    return await _recognise(core, key)


async def _authenticate_agent(core: Core, request: Request) -> Caller:
    """Return whose API key or OAuth token it is. A token is looked up with each call."""
    header = request.headers.get("authorization")
    key = parse_bearer(header)
    if key is not None:
        return await _recognise(core, key)
    token = parse_access_token(header)
    if token is None:
        raise unauthenticated()
    now, token_hash = core.clock(), hash_secret(token)
    caller = await core.read(lambda session: of_access_token(session, token_hash, now))
    if caller is None:
        raise unauthenticated()
    return caller


async def _recognise(core: Core, key: str) -> Caller:
    caller = core.keys.find(key)
    if caller is None:
        caller = await core.read(lambda session: recognise(session, key))
        if caller is None:
            raise unauthenticated()
        core.keys.keep(key, caller)
    core.keys.note_use(caller.key_id, core.clock())
    return caller


def require_json(headers: Mapping[str, str]) -> None:
    media_type = headers.get("content-type", "").split(";")[0].strip().lower()
    if media_type != "application/json":
        raise Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "invalid_request",
            "the body must be application/json",
            headers={"Accept-Post": "application/json"},
        )
