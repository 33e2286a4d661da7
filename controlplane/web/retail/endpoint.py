"""The retail API over HTTP."""

from typing import Any

from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from agent.wire.base import Model
from agent.wire.codec import encode
from controlplane.retail import routes
from controlplane.retail.cursors import Cursors
from controlplane.retail.models import RefreshRequest, TokenRequest
from controlplane.retail.operation import RetailContext, RetailOperation
from controlplane.retail.registry import OPERATIONS
from controlplane.storage.transactions import Transactions
from controlplane.web.auth import read_body
from controlplane.web.core import Core
from controlplane.web.facade import parse_fairly
from controlplane.web.retail.admission import Admission
from controlplane.web.retail.document import DocumentEndpoint
from controlplane.web.retail.tokens import TokenEndpoint, token_limit


def retail_routes(core: Core) -> list[Route]:
    admission, limit = Admission(core), token_limit()
    paths: dict[str, dict[str, RetailOperation[Any]]] = {each.path: {} for each in OPERATIONS}
    for each in OPERATIONS:
        paths[each.path][each.method] = each
    return [
        Route(routes.DOCUMENT, DocumentEndpoint()),
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
            if operation.method == "POST":
                body = await read_body(self._core, request)
                asked = await parse_fairly(self._core, caller, operation.asked, body)
            else:
                query = request.query_params.multi_items()
                asked = operation.read_parameters(request.path_params, query)

            def work(session: Session) -> Model:
                cursors = Cursors(keys.cursor_key, now)
                context = RetailContext(session, caller.organization_id, now, cursors)
                reply: Model = operation.run(context, asked)
                return reply

            def job(transactions: Transactions) -> bytes:
                transact = transactions.write if operation.writes else transactions.read
                return encode(transact(work))

            content = await self._core.run(job)
        response = Response(content, operation.status, media_type="application/json")
        await response(scope, receive, send)
