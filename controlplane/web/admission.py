"""Admission of a call: method, credential, limits, permission and media type."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Final

from starlette.requests import Request

from controlplane.accounts.key_store import recognise
from controlplane.accounts.oauth.secrets import hash_secret, parse_access_token
from controlplane.operation.api_keys import parse_bearer
from controlplane.operation.caller import Caller
from controlplane.operation.errors import (
    Refusal,
    read_only_key,
    session_required,
    unauthenticated,
)
from controlplane.operation.permissions import of_access_token
from controlplane.web.accounts.cookies import signed_in
from controlplane.web.core import Core

Authenticate = Callable[[Core, Request, bool], Awaitable[Caller]]
"""Returns the caller of a request, given whether it writes. Raises the refusal of a missing or
invalid credential."""
POST: Final = ("POST",)


async def by_key_or_session(core: Core, request: Request, writes: bool) -> Caller:
    """Authenticate with an API key or a session cookie. An API key takes precedence."""
    header = request.headers.get("authorization")
    if header is None:
        return await signed_in(core, request, writes=writes)
    key = parse_bearer(header)
    if key is None:
        raise unauthenticated()
    return await _by_key(core, key)


async def by_key_or_token(core: Core, request: Request, _writes: bool) -> Caller:
    """Authenticate with an API key or an OAuth token. A token is looked up at each call."""
    header = request.headers.get("authorization")
    key = parse_bearer(header)
    if key is not None:
        return await _by_key(core, key)
    token = parse_access_token(header)
    if token is None:
        raise unauthenticated()
    now, token_hash = core.clock(), hash_secret(token)
    caller = await core.read(lambda session: of_access_token(session, token_hash, now))
    if caller is None:
        raise unauthenticated()
    return caller


async def admit(
    core: Core,
    request: Request,
    *,
    writes: bool,
    authenticate: Authenticate = by_key_or_session,
    methods: Iterable[str] = POST,
    of_person: bool = False,
    judges_role: bool = False,
    has_body: bool = True,
) -> Caller:
    """Return the caller of a request.

    Args:
        writes: whether the operation needs a write grant.
        of_person: whether it requires a signed-in user; it is then open to every role.
        judges_role: whether it checks the role of a signed-in user itself.
        has_body: whether it takes a JSON body.

    Raises:
        Refusal: the call is not admitted.
    """
    require_method(request, *methods)
    caller = await authenticate(core, request, writes)
    request.state.caller = caller
    core.fairness.admit(caller)
    if of_person and caller.kind != "session":
        raise session_required()
    checks_itself = of_person or (judges_role and caller.kind == "session")
    if writes and not caller.can_write and not checks_itself:
        raise read_only_key()
    if has_body:
        require_json(request.headers)
    return caller


def require_method(request: Request, *methods: str) -> None:
    if request.method not in methods:
        raise Refusal(
            HTTPStatus.METHOD_NOT_ALLOWED,
            "method_not_allowed",
            f"only {' and '.join(methods)} is served here",
            headers={"Allow": ", ".join(methods)},
        )


def require_json(headers: Mapping[str, str]) -> None:
    media_type = headers.get("content-type", "").split(";")[0].strip().lower()
    if media_type != "application/json":
        raise Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "invalid_request",
            "the body must be application/json",
            headers={"Accept-Post": "application/json"},
        )


async def _by_key(core: Core, key: str) -> Caller:
    caller = core.keys.find(key)
    if caller is None:
        caller = await core.read(lambda session: recognise(session, key))
        if caller is None:
            raise unauthenticated()
        core.keys.keep(key, caller)
    core.keys.note_use(caller.key_id, core.clock())
    return caller
