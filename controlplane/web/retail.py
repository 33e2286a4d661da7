"""The routes of the retail API, and its access tokens."""

from functools import partial
from typing import Final

from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.wire.codec import encode
from controlplane.operation.caller import Caller
from controlplane.operation.errors import rate_limited, unauthenticated
from controlplane.operation.fairness import RateLimit
from controlplane.retail.credentials import clients
from controlplane.retail.credentials.clients import NewRefreshToken
from controlplane.retail.credentials.signing_keys import InvalidTokenError
from controlplane.retail.limits import ACCESS_TOKEN_S
from controlplane.retail.models import RefreshRequest, TokenRequest, Tokens
from controlplane.retail.registry import OPERATIONS
from controlplane.retail.routes import DOCUMENT, REFRESH, TOKENS
from controlplane.web.admission import READ, Handler, client_network, read_small, require_media_type
from controlplane.web.core import Core
from controlplane.web.openapi.interfaces import RETAIL_API, serve_document
from controlplane.web.pipeline import Endpoint, group_by_path

REALM: Final = "retail"
NO_TOKEN: Final = (
    "The header Authorization: Bearer <access token> is missing."
    f" Exchange the API key for an access token: POST {TOKENS}."
)
API_KEY_AS_TOKEN: Final = (
    f"This is an API key, not an access token. Exchange it: POST {TOKENS}."
    " Then send the access_token of the reply."
)
WRONG_TOKEN: Final = (
    "The access token is not valid, has expired or was revoked."
    f" Get a new one: POST {REFRESH}, or POST {TOKENS}."
)
WRONG_API_KEY: Final = (
    "The api_key in the body is not a valid API key of the retail API, or it was revoked."
)
WRONG_REFRESH_TOKEN: Final = (
    "The refresh_token in the body is not valid, has expired or was already used."
    f" Exchange the API key: POST {TOKENS}."
)
"""A reply with the status 401 has no body. These sentences explain the refusal in the header
``WWW-Authenticate`` (RFC 6750, section 3). They do not reveal why a credential is not valid. RFC
6750 recommends an explanation only for a wrong credential, but a missing credential is the most
frequent mistake of a new client."""
TOKENS_PER_S: Final = 5
TOKENS_BURST: Final = 50
"""Limits of failed token requests from one network. A request counts as failed until it succeeds,
so that concurrent requests are limited too."""


def retail_routes(core: Core) -> list[Route]:
    limit = RateLimit(TOKENS_PER_S, TOKENS_BURST, core.monotonic)
    return [
        Route(DOCUMENT, Handler(core, partial(serve_document, RETAIL_API), READ)),
        Route(TOKENS, Handler(core, partial(issue_tokens, limit, TokenRequest))),
        Route(REFRESH, Handler(core, partial(issue_tokens, limit, RefreshRequest))),
        *(
            Route(path, Endpoint(core, *operations, authenticate=by_access_token))
            for path, operations in group_by_path(OPERATIONS).items()
        ),
    ]


async def by_access_token(core: Core, request: Request, _writes: bool) -> Caller:
    """Authenticate with an access token of the retail API."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise unauthenticated(REALM, NO_TOKEN)
    if clients.is_key(token.strip()):
        raise unauthenticated(REALM, API_KEY_AS_TOKEN)
    try:
        keys = await core.signing_keys()
        key_id, family = keys.access_tokens.verify(token.strip(), core.clock())
    except InvalidTokenError:
        raise unauthenticated(REALM, WRONG_TOKEN) from None
    # The caller is read from the database with each call and not cached, because all tokens of a
    # family (`NewRefreshToken.family`) must become invalid as soon as a stolen one is detected.
    caller = await core.read(partial(clients.caller_of, key_id=key_id, family=family))
    if caller is None:
        raise unauthenticated(REALM, WRONG_TOKEN)
    return caller


async def issue_tokens(
    limit: RateLimit,
    model: type[TokenRequest] | type[RefreshRequest],
    core: Core,
    request: Request,
) -> Response:
    """Return an access token for the API key or the refresh token in the body.

    No ``Authorization`` header is required.

    The refusal does not reveal why a key or a token is not valid.
    """
    require_media_type(request.headers)
    network = client_network(core, request)
    if wait_s := limit.take(network):
        raise rate_limited(wait_s)
    body = await read_small(core, request, model)
    now = core.clock()

    def work(session: Session) -> NewRefreshToken | None:
        if isinstance(body, TokenRequest):
            return clients.exchange(session, body.api_key, now)
        return clients.refresh(session, body.refresh_token, now)

    refresh_token = await core.write(work)
    if refresh_token is None:
        is_key = isinstance(body, TokenRequest)
        raise unauthenticated(REALM, WRONG_API_KEY if is_key else WRONG_REFRESH_TOKEN)
    limit.give_back(network)
    keys = await core.signing_keys()
    tokens = Tokens(
        access_token=keys.access_tokens.issue(refresh_token.key_id, refresh_token.family, now),
        expires_in=ACCESS_TOKEN_S,
        refresh_token=refresh_token.secret,
    )
    return Response(encode(tokens), media_type="application/json")
