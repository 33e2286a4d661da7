"""A client that calls the service by JSON-RPC.

It validates each reply against the JSON-RPC envelope, and each result of a tool against the output
schema of the tool.
"""

import functools
import json
from typing import Any

import httpx2
from jsonschema import Draft202012Validator

from controlplane.accounts.oauth.metadata import RESOURCE_PATH as PATH
from controlplane.agent_protocol.tools.registry import TOOLS
from tests.fakes.schemas.compiled import CompiledValidator
from tests.unit.controlplane.running_service import RunningService

Json = dict[str, Any]
ID = {"type": ["string", "integer"]}
ENVELOPE: Json = {
    "oneOf": [
        {
            "type": "object",
            "properties": {"jsonrpc": {"const": "2.0"}, "id": ID, "result": {"type": "object"}},
            "required": ["jsonrpc", "id", "result"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "jsonrpc": {"const": "2.0"},
                "id": ID,
                "error": {
                    "type": "object",
                    "properties": {"code": {"type": "integer"}, "message": {"type": "string"},
                                   "data": True},
                    "required": ["code", "message"],
                    "additionalProperties": False,
                },
            },
            "required": ["jsonrpc", "error"],
            "additionalProperties": False,
        },
    ]
}  # fmt: skip
_ENVELOPE = CompiledValidator(Draft202012Validator(ENVELOPE))


@functools.cache
def _result_validator(tool: str) -> CompiledValidator:
    return CompiledValidator(Draft202012Validator(TOOLS[tool].output_schema))


class Agent:
    """An AI assistant: a client of the agent protocol.

    A method that gets no ``api_key`` uses a key with the write grant.
    """

    def __init__(self, service: RunningService) -> None:
        self.service = service

    async def send(
        self, content: bytes | str, api_key: str | None = None, **headers: str
    ) -> httpx2.Response:
        """Post a body. Validate a reply with status 200 against the JSON-RPC envelope."""
        reply = await self.service.post(PATH, content, api_key=api_key, **headers)
        if reply.status_code == 200:
            assert reply.headers["content-type"] == "application/json"
            assert "mcp-session-id" not in reply.headers
            _ENVELOPE.validate(reply.json())
        return reply

    async def request(self, method: str, params: Any = None, api_key: str | None = None) -> Json:
        """Return the reply to a request."""
        body: Json = {"jsonrpc": "2.0", "id": 7, "method": method}
        if params is not None:
            body["params"] = params
        reply = await self.send(json.dumps(body), api_key)
        assert reply.status_code == 200, reply.text
        reply_body: Json = reply.json()
        assert reply_body["id"] == 7
        return reply_body

    async def call(self, tool: str, api_key: str | None = None, /, **arguments: Any) -> Json:
        """Call a tool. Return its result after validation against the tool's output schema."""
        params = {"name": tool, "arguments": arguments}
        reply_body = await self.request("tools/call", params, api_key)
        assert "result" in reply_body, reply_body
        result: Json = reply_body["result"]
        assert not result["isError"], result
        assert result["content"][0]["text"]
        structured: Json = result["structuredContent"]
        _result_validator(tool).validate(structured)
        return structured

    async def tool_error(self, tool: str, api_key: str | None = None, /, **arguments: Any) -> str:
        """Make a call that the tool refuses. Return the error text that a model receives."""
        params = {"name": tool, "arguments": arguments}
        result = (await self.request("tools/call", params, api_key))["result"]
        assert result["isError"], result
        assert "structuredContent" not in result
        return str(result["content"][0]["text"])

    async def protocol_error(
        self, tool: str, api_key: str | None = None, /, **arguments: Any
    ) -> Json:
        """Make a call that the service refuses with a JSON-RPC error. Return this error."""
        params = {"name": tool, "arguments": arguments}
        error: Json = (await self.request("tools/call", params, api_key))["error"]
        return error
