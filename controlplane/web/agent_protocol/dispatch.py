"""Passes requests of the agent protocol to the official MCP SDK, and runs the tools.

This module is imported at the first call, because the SDK is large. The SDK's own HTTP server is
not used: it opens streams, returns JSON-RPC errors with a 4xx status, and accepts JSON-RPC
envelopes that the contract refuses (docs/adr/0037-agent-protocol.md).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
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
from mcp_types.methods import validate_client_request
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from agent import __version__
from agent.wire import codec, validation
from agent.wire.codec import to_plain
from controlplane.agent_protocol.tools.registry import TOOLS, run_named
from controlplane.agent_protocol.tools.tool import Tool, ToolError
from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import Refusal
from controlplane.operation.fairness import FREE_S
from controlplane.operation.permissions import renewed_caller
from controlplane.web.agent_protocol.envelope import (
    INVALID_PARAMS,
    Id,
    Json,
    RpcError,
    RpcRequest,
    encode,
)
from controlplane.web.core import Call, Core
from controlplane.web.pipeline import run_call

DEFAULT_VERSION: Final = "2025-03-26"
"""Protocol version of a request without the header ``MCP-Protocol-Version`` (MCP 2025-06-18,
transports)."""
ISSUES_MAX: Final = 8
"""Maximum number of invalid arguments that an error lists."""
NOT_ACCESSIBLE: Final = "the object does not exist, or this credential has no access to it"
INSTRUCTIONS: Final = """\
Figures and records of one merchant. Begin with business_context: it lists the locations that you \
have access to, and the first and last day with sales. describe_business_data lists datasets, \
groupings and metrics with examples. Money is in minor units of the row's currency; days and hours \
are local to each location. Only set_catalog_availability changes anything."""
_TOOL_LISTS: Final[dict[str, bytes]] = {}
"""The encoded result of tools/list, by protocol version. It is cached because the SDK checks and
converts each of the large schemas twice, which takes longer than most calls of a tool. The cached
result stays valid, because `TOOLS` never changes."""
RunTool = Callable[[Tool, Json], Awaitable[tuple[str, Json]]]
"""Runs a tool with its arguments. Returns a short text and the structured result."""


@dataclass(slots=True)
class ReplyOnlyContext:
    """The context that the SDK gets for one request. Only the reply is sent to the client."""

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
        """Drop the notification."""

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Drop the progress message."""


async def answer(
    request: RpcRequest, header_lines: Sequence[tuple[str, str]], run_tool: RunTool
) -> bytes:
    """Return the encoded result of a request.

    Args:
        header_lines: names and values of the headers. The names are in lower case.

    Raises:
        RpcError: the request is wrong.
        Refusal: a tool call is refused, for example because the credential has ended.
    """
    assert request.request_id is not None  # noqa: S101 - a notification has no reply
    if (repeated_header := find_duplicated_routing_header(header_lines)) is not None:
        raise RpcError(types.HEADER_MISMATCH, f"the header {repeated_header} must be given once")
    # White space around the value of a header is not part of the value (RFC 9110, section 5.5).
    # uvicorn does not remove trailing white space.
    headers = {name: value.strip(" \t") for name, value in header_lines}
    transport = TransportContext(kind="streamable-http", can_send_request=False, headers=headers)
    context = ReplyOnlyContext(request.request_id, transport)
    try:
        return await _result(request, context, _connection(request, headers), run_tool)
    except MCPError as error:
        raise RpcError(error.code, error.message, error.data) from None
    except ValidationError:
        raise RpcError(
            INVALID_PARAMS, f"the params of {request.method[:64]} are not valid"
        ) from None


async def _result(
    request: RpcRequest, context: ReplyOnlyContext, connection: Connection, run_tool: RunTool
) -> bytes:
    version = connection.protocol_version
    # If there are no parameters besides ``_meta``, the list depends only on the protocol version.
    is_tool_list = request.method == "tools/list" and {"_meta"}.issuperset(request.params or ())
    if is_tool_list and version in _TOOL_LISTS:
        validate_client_request(request.method, version, request.params)
        return _TOOL_LISTS[version]
    result = await serve_one(
        _SERVER,
        context,
        request.method,
        request.params,
        connection=connection,
        lifespan_state=run_tool,
    )
    encoded_result = encode(result)
    if is_tool_list:
        _TOOL_LISTS[version] = encoded_result
    return encoded_result


def _connection(request: RpcRequest, headers: Mapping[str, str]) -> Connection:
    """Return the connection state that the SDK needs. It is derived from this request only.

    Since MCP 2026-07-28, a request names its protocol version and the client in ``_meta`` of its
    params. Requests of older protocol versions only have the header ``MCP-Protocol-Version``.
    """
    version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
    meta = (request.params or {}).get("_meta", {})
    has_meta_version = types.PROTOCOL_VERSION_META_KEY in meta
    if not has_meta_version and (version is None or version in HANDSHAKE_PROTOCOL_VERSIONS):
        return Connection.from_envelope(version or DEFAULT_VERSION, None, None)
    if not has_meta_version and version not in KNOWN_PROTOCOL_VERSIONS:
        versions = {"supported": list(KNOWN_PROTOCOL_VERSIONS), "requested": version}
        raise RpcError(
            types.UNSUPPORTED_PROTOCOL_VERSION, "the protocol version is not supported", versions
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


async def run_tool(core: Core, caller: Caller, tool: Tool, arguments: Json) -> tuple[str, Json]:
    """Return a short text and the structured result.

    Raises:
        ToolError: the call is wrong, and the language model can correct it.
        RpcError: the call is refused, and the language model cannot correct it.
        Refusal: the call is refused for another reason, for example because the credential ended.
    """

    def work(context: RequestContext, arguments: Any) -> tuple[str, Json]:
        if tool.writes and not context.caller.can_write:
            raise RpcError(
                INVALID_PARAMS,
                f"{tool.name} needs an API key with a write grant, and this credential is"
                " read-only. Ask the merchant for such a key.",
            )
        text, result = tool.run(context, arguments)
        return text, to_plain(result)

    try:
        parsed_arguments = read_arguments(tool, arguments)
        call = Call(
            caller,
            await core.call_state(),
            partial(run_named, tool.name) if tool.is_long else work,
            tuple,
            parsed_arguments,
            renew=renewed_caller,
            free_s=FREE_S,
        )
        return await run_call(core, call, writes=tool.writes, is_long=tool.is_long)
    except Refusal as refusal:
        raise _rpc_error(refusal) from None


def read_arguments(tool: Tool, arguments: Json) -> Any:
    """Return the arguments as an object of the class ``tool.arguments``. Raises ToolError if they
    are invalid.
    """
    try:
        return codec.validate(arguments, tool.arguments)
    except validation.ValidationError as error:
        issues = [
            f"{issue.where or 'arguments'} {issue.reason}" for issue in error.issues[:ISSUES_MAX]
        ]
        known_arguments = ", ".join(tool.input_schema.get("properties", {})) or "none"
        raise ToolError(f"{'; '.join(issues)}. {tool.name} takes: {known_arguments}.") from None


def _rpc_error(refusal: Refusal) -> Exception:
    """Return the error for a refusal that a tool has raised.

    This is an RpcError if the data is not accessible, a ToolError if an argument is wrong, and in
    all other cases the refusal itself.
    """
    if refusal.code == "foreign_location" or refusal.code.endswith("_not_found"):
        return RpcError(INVALID_PARAMS, NOT_ACCESSIBLE)
    if refusal.errors is not None:
        fields = "; ".join(
            f"{name} {' and '.join(reasons)}" for name, reasons in refusal.errors.items()
        )
        return ToolError(f"{fields}. Change the named arguments and call again.")
    if refusal.code == "invalid_cursor":
        return ToolError(
            "invalid_cursor: the cursor belongs to a call with other arguments, or is older than 24"
            " hours. Leave cursor out to start from the beginning."
        )
    return refusal


async def _list_tools(
    _context: ServerRequestContext[RunTool], params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    if params is not None and params.cursor is not None:
        raise MCPError(INVALID_PARAMS, "all tools are on one page: leave cursor out")
    return types.ListToolsResult(tools=[_describe(tool) for tool in TOOLS.values()])


async def _call_tool(
    context: ServerRequestContext[RunTool], params: types.CallToolRequestParams
) -> types.CallToolResult:
    tool = TOOLS.get(params.name)
    if tool is None:
        names = ", ".join(TOOLS)
        raise MCPError(INVALID_PARAMS, f"there is no tool {params.name[:64]!r}: call {names}")
    try:
        text, content = await context.lifespan_context(tool, params.arguments or {})
    except ToolError as error:
        message = types.TextContent(type="text", text=str(error))
        return types.CallToolResult(content=[message], is_error=True)
    except RpcError as error:
        raise MCPError(error.code, error.message, error.data) from None
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=content
    )


def _describe(tool: Tool) -> types.Tool:
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


_SERVER: Final[Server[RunTool]] = Server(
    "venue-control",
    version=__version__,
    title="Venue control",
    instructions=INSTRUCTIONS,
    on_list_tools=_list_tools,
    on_call_tool=_call_tool,
)
# The default middleware creates spans of OpenTelemetry, which nothing receives here.
_SERVER.middleware.clear()
