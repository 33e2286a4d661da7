"""The retail API over HTTP."""

from contextlib import nullcontext
from typing import Any

from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from agent.wire.base import Model
from agent.wire.codec import encode
from controlplane.core import Core
from controlplane.http.auth import read_body
from controlplane.http.bodies import SMALL_BYTES, parse_body
from controlplane.retail import routes
from controlplane.retail.admission import Admission
from controlplane.retail.cursors import Cursors
from controlplane.retail.models import RefreshRequest, TokenRequest
from controlplane.retail.operation import RetailContext, RetailOperation
from controlplane.retail.registry import OPERATIONS
from controlplane.retail.tokens import TokenEndpoint, token_limit
from controlplane.storage.database import Database


def retail_routes(core: Core) -> list[Route]:
    admission, limit = Admission(core), token_limit()
    paths: dict[str, dict[str, RetailOperation[Any]]] = {each.path: {} for each in OPERATIONS}
    for each in OPERATIONS:
        paths[each.path][each.method] = each
    return [
        Route(routes.TOKENS, TokenEndpoint(core, admission, TokenRequest, limit)),
        Route(routes.REFRESH, TokenEndpoint(core, admission, RefreshRequest, limit)),
        *(Route(path, RetailEndpoint(core, admission, by)) for path, by in paths.items()),
    ]


class RetailEndpoint:
    """An ASGI endpoint for the operations at one path, by method."""

    def __init__(
        self, core: Core, admission: Admission, operations: dict[str, RetailOperation[Any]]
    ) -> None:
        self._core = core
        self._admission = admission
        self._operations = operations

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        caller = await self._admission.admit(request, self._operations)
        operation = self._operations[request.method]
        keys = await self._admission.keys()
        now = self._core.clock()
        with self._core.fairness.call(caller):
            body = await read_body(self._core, request) if operation.method == "POST" else b""

            def job(database: Database) -> Model:
                asked = (
                    parse_body(operation.asked, body)
                    if operation.method == "POST"
                    else operation.read_parameters(
                        request.path_params, request.query_params.multi_items()
                    )
                )

                def work(session: Session) -> Model:
                    cursors = Cursors(keys.cursor_key, now)
                    context = RetailContext(session, caller.organization_id, now, cursors)
                    reply: Model = operation.run(context, asked)
                    return reply

                return database.write(work) if operation.writes else database.read(work)

            is_large = len(body) > SMALL_BYTES
            async with self._core.large_bodies if is_large else nullcontext():
                reply = await self._core.run(job)
        response = Response(encode(reply), operation.status, media_type="application/json")
        await response(scope, receive, send)
