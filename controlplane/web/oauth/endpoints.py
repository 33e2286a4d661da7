"""The endpoints that programs call: metadata, registration, tokens, revocation."""

from collections.abc import Callable
from typing import Any, Final

from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from controlplane.accounts.oauth.metadata import (
    AUTHORIZE,
    REGISTER,
    RESOURCE_METADATA,
    RESOURCE_PATH,
    REVOKE,
    SERVER_METADATA,
    SIGN_IN,
    TOKEN,
    resource_metadata,
    server_metadata,
)
from controlplane.accounts.oauth.oauth_request import OAuthReply, OAuthRequest, read_parameters
from controlplane.accounts.throttle import network_of
from controlplane.operation.bodies import parse_json
from controlplane.operation.errors import rate_limited
from controlplane.operation.fairness import spread
from controlplane.operation.rate_limit import RateLimit
from controlplane.web.accounts import cookies
from controlplane.web.admission import require_json, require_method
from controlplane.web.bodies import read_body
from controlplane.web.core import Core
from controlplane.web.oauth.authorize import AuthorizeEndpoint, SignInFormEndpoint
from controlplane.web.oauth.forms import read_form
from controlplane.web.oauth.issuer import issuer_of

REGISTRATIONS_PER_S: Final = 1 / 60
REGISTRATIONS_BURST: Final = 10
CALLS_PER_S: Final = 2.0
CALLS_BURST: Final = 60
"""Of one address: exchanges and revocations."""
REGISTRATION_MAX_BYTES: Final = 8192
METADATA_KEPT_S: Final = 300


def oauth_routes(core: Core) -> list[Route]:
    of_server = MetadataEndpoint(core, server_metadata)
    of_resource = MetadataEndpoint(core, resource_metadata)
    calls = RateLimit(CALLS_PER_S, CALLS_BURST, core.monotonic)
    return [
        Route(SERVER_METADATA, of_server),
        Route(RESOURCE_METADATA, of_resource),
        Route(RESOURCE_METADATA + RESOURCE_PATH, of_resource),
        Route(REGISTER, RegistrationEndpoint(core)),
        Route(TOKEN, TokenEndpoint(core, calls)),
        Route(REVOKE, RevocationEndpoint(core, calls)),
        Route(AUTHORIZE, AuthorizeEndpoint(core)),
        Route(SIGN_IN, SignInFormEndpoint(core)),
    ]


class MetadataEndpoint:
    """Serves a document about the issuer, to anybody."""

    def __init__(self, core: Core, document: Callable[[str], dict[str, Any]]) -> None:
        self._core = core
        self._document = document

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        require_method(request, "GET", "HEAD")
        headers = {"Cache-Control": f"public, max-age={METADATA_KEPT_S}", "Vary": "Host"}
        document = self._document(issuer_of(self._core, request))
        await JSONResponse(document, headers=headers)(scope, receive, send)


class RegistrationEndpoint:
    """Takes what a program says of itself (RFC 7591), from anybody, but not often."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._limit = RateLimit(REGISTRATIONS_PER_S, REGISTRATIONS_BURST, core.monotonic)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        core, request = self._core, Request(scope, receive)
        require_method(request, "POST")
        asked = OAuthRequest("POST", issuer_of(core, request), request.url.path, {})
        count(core, request, self._limit)
        require_json(request.headers)
        body = parse_json(await read_body(core, request, REGISTRATION_MAX_BYTES))
        now = core.clock()

        def work(session: Session) -> OAuthReply:
            from controlplane.accounts.oauth.authorization_server import Server
            from controlplane.accounts.oauth.registration import registration_request

            server = Server(session, now, asked.issuer)
            reply: OAuthReply = server.create_endpoint_response(
                "client_registration", registration_request(asked, body)
            )
            return reply

        reply = await core.write(work)
        await json_reply(reply)(scope, receive, send)


class TokenEndpoint:
    """Gives tokens for a code or a refresh token."""

    def __init__(self, core: Core, limit: RateLimit) -> None:
        self._core = core
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = await read_asked(self._core, Request(scope, receive), self._limit)
        now = self._core.clock()

        def work(session: Session) -> OAuthReply:
            from controlplane.accounts.oauth.authorization_server import Server

            reply: OAuthReply = Server(session, now, asked.issuer).create_token_response(asked)
            return reply

        reply = await self._core.write(work)
        await json_reply(reply)(scope, receive, send)


class RevocationEndpoint:
    """Ends the grant of a token (RFC 7009)."""

    def __init__(self, core: Core, limit: RateLimit) -> None:
        self._core = core
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = await read_asked(self._core, Request(scope, receive), self._limit)
        now = self._core.clock()

        def work(session: Session) -> OAuthReply:
            from controlplane.accounts.oauth.authorization_server import Server

            server = Server(session, now, asked.issuer)
            reply: OAuthReply = server.create_endpoint_response("revocation", asked)
            return reply

        reply = await self._core.write(work)
        await json_reply(reply)(scope, receive, send)


async def read_asked(core: Core, request: Request, limit: RateLimit) -> OAuthRequest:
    """Return what a program's form asks for, or raise the refusal."""
    require_method(request, "POST")
    issuer = issuer_of(core, request)
    count(core, request, limit)
    parameters, resources = read_parameters(await read_form(core, request))
    return OAuthRequest("POST", issuer, request.url.path, parameters, resources)


def count(core: Core, request: Request, limit: RateLimit) -> None:
    """Count a call of this address. Raises the refusal of one too many."""
    if wait_s := limit.take(network_of(cookies.address_of(core, request))):
        raise rate_limited(spread(wait_s))


def json_reply(reply: OAuthReply) -> Response:
    headers = {name: value for name, value in reply.headers.items() if name != "content-type"}
    return JSONResponse(dict(reply.body), reply.status, headers)
