"""Requests to the official SDK's dispatch and back. Loaded with the first call: it is large.

The SDK's own HTTP server is not used: it opens streams, answers JSON-RPC errors with 4xx and takes
envelopes that the contract refuses (docs/adr/0037-agent-protocol.md).
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.runner import serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import (
    MCP_PROTOCOL_VERSION_HEADER,
    InboundLadderRejection,
    classify_inbound_request,
    find_duplicated_routing_header,
)
from mcp.shared.message import MessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from agent import __version__
from controlplane.agent_protocol.tools.registry import TOOLS
from controlplane.agent_protocol.tools.tool import Tool, ToolError
from controlplane.web.agent_protocol.calls import Call
from controlplane.web.agent_protocol.envelope import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Id,
    Json,
    RpcError,
    RpcRequest,
)

log = logging.getLogger(__name__)
UNTOLD_VERSION: Final = "2025-03-26"
"""What a request without ``MCP-Protocol-Version`` speaks (MCP 2025-06-18, transports)."""
INSTRUCTIONS: Final = """\
Figures and records of one merchant. Begin with business_context: it tells which locations you may \
ask about and for which days there are sales. describe_business_data lists datasets, groupings and \
metrics with examples. Money is in minor units of the row's currency; days and hours are local to \
each location. Only set_catalog_availability changes anything."""


@dataclass(slots=True)
class OneReply:
    """The SDK's view of one request: there is no way back to the client but the reply."""

    request_id: Id
    transport: TransportContext
    message_metadata: MessageMetadata = None
    can_send_request: bool = False
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Nothing is sent."""

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Nothing is sent."""


async def answer(request: RpcRequest, lines: Sequence[tuple[str, str]], call: Call) -> Json:
    """Return the result. ``lines`` are the headers, their names in lower case.

    Raises RpcError, and a refusal where the credential has ended.
    """
    assert request.request_id is not None  # noqa: S101 - a notification has no answer
    if (repeated := find_duplicated_routing_header(lines)) is not None:
        raise RpcError(types.HEADER_MISMATCH, f"the header {repeated} must be given once")
    # White space around a value is none of it (RFC 9110, section 5.5); uvicorn keeps what follows.
    headers = {name: value.strip(" \t") for name, value in lines}
    transport = TransportContext(kind="streamable-http", can_send_request=False, headers=headers)
    context = OneReply(request.request_id, transport)
    try:
        return await serve_one(
            _SERVER,
            context,
            request.method,
            request.params,
            connection=_connection(request, headers),
            lifespan_state=call,
        )
    except MCPError as error:
        raise RpcError(error.code, error.message, error.data) from None
    except ValidationError:
        raise RpcError(
            INVALID_PARAMS, f"the params do not fit what {request.method[:64]} takes"
        ) from None


def _connection(request: RpcRequest, headers: Mapping[str, str]) -> Connection:
    """Return the state of a connection as this request alone tells it."""
    told = headers.get(MCP_PROTOCOL_VERSION_HEADER)
    meta = (request.params or {}).get("_meta", {})
    is_enveloped = types.PROTOCOL_VERSION_META_KEY in meta
    if not is_enveloped and (told is None or told in HANDSHAKE_PROTOCOL_VERSIONS):
        return Connection.from_envelope(told or UNTOLD_VERSION, None, None)
    if not is_enveloped and told not in KNOWN_PROTOCOL_VERSIONS:
        versions = {"supported": list(KNOWN_PROTOCOL_VERSIONS), "requested": told}
        raise RpcError(
            types.UNSUPPORTED_PROTOCOL_VERSION, "the protocol version is not served", versions
        )
    body = {
        "jsonrpc": "2.0",
        "id": request.request_id,
        "method": request.method,
        "params": request.params or {},
    }
    verdict = classify_inbound_request(body, headers=headers)
    if isinstance(verdict, InboundLadderRejection):
        raise RpcError(verdict.code, verdict.message, verdict.data)
    return Connection.from_envelope(
        verdict.protocol_version, verdict.client_info, verdict.client_capabilities
    )


async def _list_tools(
    _context: ServerRequestContext[Call], params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    if params is not None and params.cursor is not None:
        raise MCPError(INVALID_PARAMS, "all tools are on one page: leave cursor out")
    return types.ListToolsResult(tools=[_described(tool) for tool in TOOLS.values()])


async def _call_tool(
    context: ServerRequestContext[Call], params: types.CallToolRequestParams
) -> types.CallToolResult:
    tool = TOOLS.get(params.name)
    if tool is None:
        names = ", ".join(TOOLS)
        raise MCPError(INVALID_PARAMS, f"there is no tool {params.name[:64]!r}: call {names}")
    try:
        text, structured = await context.lifespan_context.run(tool, params.arguments or {})
    except ToolError as error:
        said = types.TextContent(type="text", text=str(error))
        return types.CallToolResult(content=[said], is_error=True)
    except RpcError as error:
        raise MCPError(error.code, error.message, error.data) from None
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=structured
    )


def _described(tool: Tool[Any]) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(
            read_only_hint=not tool.writes,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=False,
        ),
    )


_SERVER: Final[Server[Call]] = Server(
    "venue-control",
    version=__version__,
    title="Venue control",
    instructions=INSTRUCTIONS,
    on_list_tools=_list_tools,
    on_call_tool=_call_tool,
)


def internal_error(request_id: Id, trace_id: str) -> RpcError:
    """Return what a caller learns of a fault of ours; the log has the rest."""
    log.exception("trace_id=%s the call failed", trace_id, extra={"trace_id": trace_id})
    message = "the service failed to answer; the trace id names the entry in its log"
    return RpcError(INTERNAL_ERROR, message, {"traceId": trace_id}, request_id)
