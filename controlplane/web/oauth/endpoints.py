"""The endpoints that OAuth clients call: metadata, registration, tokens, revocation."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from controlplane.accounts.oauth import metadata
from controlplane.accounts.oauth.oauth_request import OAuthReply, OAuthRequest, read_parameters
from controlplane.operation.bodies import parse_json
from controlplane.operation.fairness import RateLimit
from controlplane.web.admission import READ, Handler, read_body, require_media_type
from controlplane.web.core import Core
from controlplane.web.oauth.authorize import authorize, sign_in
from controlplane.web.oauth.requests import count_call, issuer_of, read_form

REGISTRATIONS_PER_S: Final = 1 / 60
REGISTRATIONS_BURST: Final = 10
CALLS_PER_S: Final = 2.0
CALLS_BURST: Final = 60
"""Limits of token requests and revocations from one network."""
PAGES_PER_S: Final = 2.0
PAGES_BURST: Final = 60
"""Limits of calls of the authorization page from one network."""
REGISTRATION_MAX_BYTES: Final = 8192
METADATA_CACHED_S: Final = 300
_DOCUMENTS: Final = {
    metadata.SERVER_METADATA: metadata.server_metadata,
    metadata.RESOURCE_METADATA: metadata.resource_metadata,
    metadata.RESOURCE_METADATA + metadata.RESOURCE_PATH: metadata.resource_metadata,
}


def oauth_routes(core: Core) -> list[Route]:
    def limit(rate_per_s: float, burst: float) -> RateLimit:
        return RateLimit(rate_per_s, burst, core.monotonic)

    registrations = limit(REGISTRATIONS_PER_S, REGISTRATIONS_BURST)
    calls, pages = limit(CALLS_PER_S, CALLS_BURST), limit(PAGES_PER_S, PAGES_BURST)
    return [
        *(
            Route(path, Handler(core, partial(serve_metadata, document), READ))
            for path, document in _DOCUMENTS.items()
        ),
        Route(metadata.REGISTER, Handler(core, partial(register, registrations))),
        Route(metadata.TOKEN, Handler(core, partial(issue_token, calls))),
        Route(metadata.REVOKE, Handler(core, partial(revoke, calls))),
        Route(metadata.AUTHORIZE, Handler(core, partial(authorize, pages), ("GET", "POST"))),
        Route(metadata.SIGN_IN, Handler(core, sign_in)),
    ]


async def serve_metadata(
    document: Callable[[str], dict[str, Any]], core: Core, request: Request
) -> Response:
    """Return a document about the issuer. No credential is required."""
    headers = {"Cache-Control": f"public, max-age={METADATA_CACHED_S}", "Vary": "Host"}
    return JSONResponse(document(issuer_of(core, request)), headers=headers)


async def register(limit: RateLimit, core: Core, request: Request) -> Response:
    """Register a client by its own description (RFC 7591). No credential is required."""
    oauth_request = OAuthRequest("POST", issuer_of(core, request), request.url.path, {})
    count_call(core, request, limit, "too many programs were registered")
    require_media_type(request.headers)
    body = parse_json(await read_body(core, request, REGISTRATION_MAX_BYTES))

    def work(server: Any) -> OAuthReply:
        from controlplane.accounts.oauth.registration import registration_request

        registration = registration_request(oauth_request, body)
        reply: OAuthReply = server.create_endpoint_response("client_registration", registration)
        return reply

    return await _call(core, oauth_request, work)


async def issue_token(limit: RateLimit, core: Core, request: Request) -> Response:
    """Return tokens for a code or a refresh token."""
    oauth_request = await _read(core, request, limit)
    return await _call(
        core, oauth_request, lambda server: server.create_token_response(oauth_request)
    )


async def revoke(limit: RateLimit, core: Core, request: Request) -> Response:
    """End the grant of a token (RFC 7009)."""
    oauth_request = await _read(core, request, limit)
    return await _call(
        core,
        oauth_request,
        lambda server: server.create_endpoint_response("revocation", oauth_request),
    )


async def _read(core: Core, request: Request, limit: RateLimit) -> OAuthRequest:
    """Return the OAuth request that a client sent as a form. Raises a refusal if it is invalid."""
    issuer = issuer_of(core, request)
    count_call(core, request, limit)
    parameters, resources = read_parameters(await read_form(core, request))
    return OAuthRequest("POST", issuer, request.url.path, parameters, resources)


async def _call(
    core: Core, oauth_request: OAuthRequest, work: Callable[[Any], OAuthReply]
) -> Response:
    """Return the response of the authorization server to a request."""
    now = core.clock()

    def transact(session: Session) -> OAuthReply:
        from controlplane.accounts.oauth.authorization_server import Server

        return work(Server(session, now, oauth_request.issuer))

    reply = await core.write(transact)
    headers = {name: value for name, value in reply.headers.items() if name != "content-type"}
    return JSONResponse(dict(reply.body), reply.status, headers)
