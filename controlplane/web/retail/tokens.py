"""``POST /auth/tokens`` and ``POST /auth/tokens/refresh``: an access token for a secret."""

from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeVar

from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agent.wire.base import Model
from agent.wire.codec import encode
from controlplane.operation.bodies import parse_body
from controlplane.operation.errors import rate_limited, unauthenticated
from controlplane.operation.rate_limit import RateLimit
from controlplane.retail.credentials import clients
from controlplane.retail.credentials.clients import Grant
from controlplane.retail.limits import ACCESS_TOKEN_S
from controlplane.retail.models import RefreshRequest, TokenRequest, Tokens
from controlplane.web.admission import require_json, require_method
from controlplane.web.bodies import read_body
from controlplane.web.core import Core

BODY_MAX_BYTES: Final = 4096
RATE_PER_S: Final = 5
BURST: Final = 50
"""Of one address, good and bad. A client needs one an hour."""

Body = TypeVar("Body", bound=Model)
Exchange = Callable[[Session, str, datetime], Grant | None]


class TokenEndpoint:
    """Anybody may call it: that a secret is wrong is all that is told."""

    def __init__(
        self,
        core: Core,
        body: type[TokenRequest] | type[RefreshRequest],
        limit: RateLimit,
    ) -> None:
        self._core = core
        self._body = body
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        require_method(request, "POST")
        require_json(request.headers)
        if wait_s := self._limit.take(request.client.host if request.client else ""):
            raise rate_limited(wait_s)
        body = parse_body(self._body, await read_body(self._core, request, BODY_MAX_BYTES))
        now = self._core.clock()

        def work(session: Session) -> Grant | None:
            if isinstance(body, TokenRequest):
                return clients.exchange(session, body.api_key, now)
            return clients.refresh(session, body.refresh_token, now)

        grant = await self._core.write(work)
        if grant is None:
            raise unauthenticated("retail")
        keys = await self._core.signing_keys.get()
        tokens = Tokens(
            access_token=keys.access_tokens.issue(grant.key_id, now),
            expires_in=ACCESS_TOKEN_S,
            refresh_token=grant.refresh_token,
        )
        await Response(encode(tokens), media_type="application/json")(scope, receive, send)


def token_limit(core: Core) -> RateLimit:
    return RateLimit(RATE_PER_S, BURST, core.monotonic)
