"""The routes of the retail API, and its access tokens."""

from functools import partial
from uuid import UUID

from starlette.requests import Request
from starlette.routing import Route

from controlplane.operation.caller import Caller
from controlplane.operation.errors import unauthenticated
from controlplane.retail import routes
from controlplane.retail.credentials import clients
from controlplane.retail.credentials.access_tokens import InvalidTokenError
from controlplane.retail.models import RefreshRequest, TokenRequest
from controlplane.retail.registry import OPERATIONS
from controlplane.web.core import Core
from controlplane.web.pipeline import Endpoint, by_path
from controlplane.web.retail.document import DocumentEndpoint
from controlplane.web.retail.tokens import TokenEndpoint, token_limit

REALM = "retail"


def retail_routes(core: Core) -> list[Route]:
    limit = token_limit(core)
    return [
        Route(routes.DOCUMENT, DocumentEndpoint()),
        Route(routes.TOKENS, TokenEndpoint(core, TokenRequest, limit)),
        Route(routes.REFRESH, TokenEndpoint(core, RefreshRequest, limit)),
        *(
            Route(path, Endpoint(core, *operations, authenticate=by_access_token))
            for path, operations in by_path(OPERATIONS).items()
        ),
    ]


async def by_access_token(core: Core, request: Request, _writes: bool) -> Caller:
    """Authenticate with an access token of the retail API."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise unauthenticated(REALM)
    try:
        keys = await core.signing_keys.get()
        key_id = keys.access_tokens.client(token.strip(), core.clock())
    except InvalidTokenError:
        raise unauthenticated(REALM) from None
    caller = core.keys.find(_cached_as(key_id))
    if caller is None:
        caller = await core.read(partial(clients.caller_of, key_id=key_id))
        if caller is None:
            raise unauthenticated(REALM)
        core.keys.keep(_cached_as(key_id), caller)
    return caller


def _cached_as(key_id: UUID) -> str:
    return f"retail {key_id}"
