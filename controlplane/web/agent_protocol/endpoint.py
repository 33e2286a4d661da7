"""``POST /api/mcp/v1``: one request in, one JSON reply out, nothing kept between two."""

from http import HTTPStatus
from types import ModuleType
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from controlplane.operation.caller import Caller
from controlplane.operation.errors import Refusal
from controlplane.web.admission import admit, by_key_or_token, require_method
from controlplane.web.agent_protocol.calls import Call
from controlplane.web.agent_protocol.envelope import (
    RpcError,
    RpcRequest,
    read_request,
    write_error,
    write_result,
)
from controlplane.web.agent_protocol.refusals import (
    PATH,
    require_no_web_page,
    unauthorized,
)
from controlplane.web.bodies import read_body
from controlplane.web.core import Core

BODY_MAX_BYTES: Final = 65_536
"""What a tool takes is a thousandth of it."""


def agent_protocol_routes(core: Core) -> list[Route]:
    return [Route(PATH, AgentProtocolEndpoint(core))]


class AgentProtocolEndpoint:
    """An ASGI endpoint."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._dispatch: ModuleType | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        require_method(request, "POST")
        require_no_web_page(request)
        try:
            caller = await admit(self._core, request, authenticate=by_key_or_token, writes=False)
            with self._core.fairness.call(caller):
                limit = min(BODY_MAX_BYTES, self._core.settings.body_limit_bytes)
                body = await read_body(self._core, request, limit)
                response = await self._answer(request, caller, body)
        except Refusal as refusal:
            if refusal.status == HTTPStatus.UNAUTHORIZED:
                raise unauthorized(request, self._core.settings.origin) from None
            raise
        await response(scope, receive, send)

    async def _answer(self, request: Request, caller: Caller, body: bytes) -> Response:
        try:
            asked = read_request(body)
            if asked.request_id is None:
                return Response(status_code=HTTPStatus.ACCEPTED)
            content = await self._result(asked, Call(self._core, caller), request)
        except RpcError as error:
            content = write_error(error)
        return Response(content, media_type="application/json")

    async def _result(self, asked: RpcRequest, call: Call, request: Request) -> bytes:
        """Return the reply. Raises RpcError that names the request."""
        assert asked.request_id is not None  # noqa: S101 - a notification has no answer
        dispatch = self._dispatch or await self._load()
        try:
            result = await dispatch.answer(asked, request.headers.items(), call)
            return write_result(asked.request_id, result)
        except RpcError as error:
            error.request_id = asked.request_id
            raise
        except Refusal:
            raise
        except Exception:  # noqa: BLE001 - the boundary: told as JSON-RPC has it, and logged
            trace_id = request.state.trace_id
            raise dispatch.internal_error(asked.request_id, trace_id) from None

    async def _load(self) -> ModuleType:
        """Load the SDK beside the event loop: it takes half a second, which heartbeats must not
        wait for."""

        def load(_transactions: object) -> ModuleType:
            from controlplane.web.agent_protocol import dispatch

            return dispatch

        self._dispatch = await self._core.run(load)
        return self._dispatch
