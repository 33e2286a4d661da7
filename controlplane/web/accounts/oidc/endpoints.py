"""Begins and finishes a sign-in with an identity provider."""

import logging
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl

from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from controlplane.accounts.oauth.metadata import AUTHORIZE
from controlplane.accounts.oidc.errors import ProviderRefusedError, ProviderUnavailableError
from controlplane.accounts.oidc.flow import Flow
from controlplane.accounts.oidc.members import find_or_create_user
from controlplane.accounts.sessions import ProviderSignIn
from controlplane.operation.errors import Refusal
from controlplane.web.accounts import cookies
from controlplane.web.accounts.forms import CONSOLE, redirect
from controlplane.web.accounts.oidc.links import callback_path, start_path
from controlplane.web.accounts.oidc.provider_client import Answer, ProviderClient
from controlplane.web.accounts.opening import Browser, note_refused, open_session
from controlplane.web.accounts.sign_in import count_attempt
from controlplane.web.admission import Handler
from controlplane.web.core import Core
from controlplane.web.oauth.requests import issuer_of

log = logging.getLogger("controlplane.web.accounts.oidc")
QUERY_MAX: Final = 2048
"""Maximum length of the query string of an OAuth page that sent the user to the sign-in. The flow
cookie stores the query string, so that the user can return to this page after the sign-in. If the
query string is longer, the user returns to the console instead."""
PARAMETERS_MAX: Final = 20
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_EXPIRED: Final = "the sign-in has expired, or was finished already: start again"


def oidc_routes(core: Core) -> list[Route]:
    routes = []
    for client in core.provider_clients.values():
        provider = client.provider
        routes += [
            Route(start_path(provider), Handler(core, partial(start, client), ("GET",))),
            Route(callback_path(provider), Handler(core, partial(finish, client), ("GET",))),
        ]
    return routes


async def start(client: ProviderClient, core: Core, request: Request) -> Response:
    """Redirect the browser to the provider.

    Any site may link here (OpenID Connect Core, 4). This is safe, because the answer is accepted
    only from the browser that began the sign-in.
    """
    count_attempt(core, request)
    flow = Flow.begin(client.provider, _redirect_uri(client, core, request))
    try:
        location = flow.authorization_url(await client.metadata())
    except (ProviderUnavailableError, ProviderRefusedError) as error:
        raise _unavailable(client, error) from error
    query = request.query_params.get("return", "")
    encoded_query = urlsafe_b64encode(query.encode()).decode() if len(query) <= QUERY_MAX else ""
    cookie = cookies.FLOW.header(core, request, f"{flow.secret}.{encoded_query}")
    return redirect(location, cookie)


async def finish(client: ProviderClient, core: Core, request: Request) -> Response:
    """Open a session for the answer of the provider."""
    address = count_attempt(core, request)
    cookie_deletion = {"set-cookie": cookies.FLOW.header(core, request, "")}
    secret, _, encoded_query = cookies.FLOW.value(core, request).partition(".")
    if _SECRET.fullmatch(secret) is None:
        raise _refused(_EXPIRED, cookie_deletion)
    flow = Flow(client.provider, _redirect_uri(client, core, request), secret)
    try:
        code = flow.code_of(_parameters(request), await client.metadata())
        answer = await client.exchange(flow, code, core.clock())
        token = await _open(client, core, request, answer)
    except ProviderUnavailableError as error:
        raise _unavailable(client, error, cookie_deletion) from error
    except ProviderRefusedError as error:
        await note_refused(core, None, address, f"{client.provider.label}: {error}")
        raise _refused(str(error), cookie_deletion) from error
    location = f"{AUTHORIZE}?{_decode_query(encoded_query)}" if encoded_query else CONSOLE
    return redirect(
        location, cookies.SESSION.header(core, request, token), cookie_deletion["set-cookie"]
    )


async def _open(client: ProviderClient, core: Core, request: Request, answer: Answer) -> str:
    """Open a session of the user in the answer, and return its token.

    Raises:
        ProviderRefusedError: the user may not use this service.
    """
    provider, now, browser = client.provider, core.clock(), Browser.of(core, request)
    sign_in = ProviderSignIn(
        provider.id, answer.claims.subject, answer.access_token, answer.refresh_token
    )

    def work(session: Session) -> str | None:
        user = find_or_create_user(session, provider, answer.claims, now)
        if user is None:
            return None
        detail = f"by {provider.label}"
        return open_session(session, user, browser, now, sign_in=sign_in, detail=detail)[0]

    token = await core.write(work)
    if token is None:
        raise ProviderRefusedError(
            f"none of your groups at {provider.label} may use this service: ask your administrator"
        )
    return token


def _parameters(request: Request) -> Mapping[str, str]:
    """Return the parameters of the answer. A repeated parameter is refused (RFC 6749, 3.1)."""
    try:
        pairs = parse_qsl(request.url.query, max_num_fields=PARAMETERS_MAX, errors="strict")
    except ValueError:
        raise ProviderRefusedError("the answer cannot be read") from None
    if len(dict(pairs)) != len(pairs):
        raise ProviderRefusedError("the answer has a repeated parameter")
    return dict(pairs)


def _redirect_uri(client: ProviderClient, core: Core, request: Request) -> str:
    return issuer_of(core, request) + callback_path(client.provider)


def _decode_query(encoded_query: str) -> str:
    """Return the query in the cookie, without invalid characters. The OAuth page validates it."""
    try:
        text = urlsafe_b64decode(encoded_query.encode("ascii", "ignore")).decode()
    except ValueError:
        return ""
    return "".join(each for each in text if each.isascii() and each.isprintable())


def _refused(detail: str, headers: Mapping[str, str]) -> Refusal:
    return Refusal(HTTPStatus.FORBIDDEN, "sign_in_refused", detail, headers=headers)


def _unavailable(
    client: ProviderClient, error: Exception, headers: Mapping[str, str] | None = None
) -> Refusal:
    label = client.provider.label
    log.warning("sign-in with %s failed: %s", client.provider.id, error)
    detail = f"{label} cannot be used at the moment: {error}. Try again later"
    return Refusal(
        HTTPStatus.SERVICE_UNAVAILABLE, "provider_unavailable", detail,
        headers={"Retry-After": "30", **(headers or {})},
    )  # fmt: skip
