"""``POST /api/mcp/v1``: one request, one JSON reply. No state is kept between requests.

If the service refuses the call, for example because of its credential or a limit, the reply is
``{"error": …}`` (contract: Errors). An invalid JSON-RPC request gets a JSON-RPC error with status
200.
"""

import logging
import re
from functools import partial
from http import HTTPStatus
from types import ModuleType
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from controlplane.accounts.oauth.metadata import RESOURCE_METADATA, RESOURCE_PATH
from controlplane.operation.caller import Caller
from controlplane.operation.errors import Refusal, foreign_origin, internal_error
from controlplane.web.admission import Handler, admit, by_key_or_token, read_body
from controlplane.web.agent_protocol.envelope import (
    INTERNAL_ERROR,
    RpcError,
    RpcRequest,
    encode_error,
    encode_result,
    read_request,
)
from controlplane.web.core import Core

log = logging.getLogger(__name__)
BODY_MAX_BYTES: Final = 65_536
"""Maximum size of a body in bytes. The arguments of a typical call are a thousand times smaller."""
METADATA_PATH: Final = RESOURCE_METADATA + RESOURCE_PATH
"""Path of the metadata of the resource (RFC 9728)."""
_HOST: Final = re.compile(r"[A-Za-z0-9.\-]{1,253}(:\d{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:\d{1,5})?")
_LOOPBACK: Final = re.compile(
    r"https?://(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?", re.IGNORECASE
)


def agent_protocol_routes(core: Core) -> list[Route]:
    return [Route(RESOURCE_PATH, Handler(core, AgentProtocol().call))]


class AgentProtocol:
    """Handles the calls. The module that uses the official SDK is imported at the first call."""

    _dispatch: ModuleType | None = None

    async def call(self, core: Core, request: Request) -> Response:
        """Answer one JSON-RPC request."""
        require_no_web_page(request)
        try:
            caller = await admit(core, request, authenticate=by_key_or_token, writes=False)
            with core.fairness.call(caller):
                limit = min(BODY_MAX_BYTES, core.settings.body_limit_bytes)
                body = await read_body(core, request, limit)
                return await self._answer(core, request, caller, body)
        except Refusal as refusal:
            if refusal.status == HTTPStatus.UNAUTHORIZED:
                raise _unauthorized(request, core.settings.origin) from None
            raise

    async def _answer(self, core: Core, request: Request, caller: Caller, body: bytes) -> Response:
        try:
            call = read_request(body)
            if call.request_id is None:
                return Response(status_code=HTTPStatus.ACCEPTED)
            content = await self._result(core, request, caller, call)
        except RpcError as error:
            content = encode_error(error)
        return Response(content, media_type="application/json")

    async def _result(
        self, core: Core, request: Request, caller: Caller, call: RpcRequest
    ) -> bytes:
        """Return the reply. Raises RpcError with the id of the request."""
        assert call.request_id is not None  # noqa: S101 - a notification has no reply
        try:
            dispatch = self._dispatch or await self._load(core)
            result = await dispatch.answer(
                call, request.headers.items(), partial(dispatch.run_tool, core, caller)
            )
            return encode_result(call.request_id, result)
        except RpcError as error:
            error.request_id = call.request_id
            raise
        except Refusal:
            raise
        except Exception:
            # Every error is caught: the caller gets only a trace id, and the log has the details.
            trace_id = request.state.trace_id
            log.exception("trace_id=%s the call failed", trace_id, extra={"trace_id": trace_id})
            data = {"traceId": trace_id}
            message = internal_error().detail
            raise RpcError(INTERNAL_ERROR, message, data, call.request_id) from None

    async def _load(self, core: Core) -> ModuleType:
        """Import the module that uses the official SDK.

        The import takes half a second. It runs in a thread, so that heartbeats do not wait for it.
        """

        def load(_transact: object) -> ModuleType:
            from controlplane.web.agent_protocol import dispatch

            return dispatch

        self._dispatch = await core.run(load)
        return self._dispatch


def _unauthorized(request: Request, origin: str | None) -> Refusal:
    """Return the refusal that names the metadata of the resource (RFC 9728, section 5.1).

    ``origin`` is `Settings.origin`.
    """
    metadata = f"{origin or _origin_of(request)}{METADATA_PATH}"
    return Refusal(
        HTTPStatus.UNAUTHORIZED,
        "unauthenticated",
        "the credential is missing or invalid: send Authorization: Bearer <API key or OAuth token>",
        headers={"WWW-Authenticate": f'Bearer resource_metadata="{metadata}"'},
    )


def _origin_of(request: Request) -> str:
    """Return the origin that the caller used.

    It is taken from headers that the caller can set to any value. This is safe, because the result
    is only returned to the same caller.
    """
    host = request.headers.get("host", "")
    if not _HOST.fullmatch(host):
        host = "localhost"
    is_tls = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto", ""))
    return f"{'https' if is_tls else 'http'}://{host}"


def require_no_web_page(request: Request) -> None:
    """Refuse calls from web pages, except from pages on this machine.

    Otherwise a page could use DNS rebinding to reach a service on loopback (MCP, Streamable HTTP,
    security warning). Browsers send the origin of the page. Other programs do not send an origin.
    """
    origin = request.headers.get("origin")
    if origin is not None and not _LOOPBACK.fullmatch(origin):
        raise foreign_origin("calls from web pages of other origins are not accepted")
