"""Tests of the protocol without tool calls: methods, versions, notifications, credentials."""

import json
from typing import Any

import pytest

from controlplane.accounts.oauth.metadata import RESOURCE_PATH as PATH
from controlplane.web.agent_protocol.endpoint import METADATA_PATH
from tests.unit.controlplane.agent_protocol.agent import Agent

INITIALIZE_PARAMS = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022
NOTIFICATION = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
TOOLS = [
    "business_context", "describe_business_data", "query_sales", "read_business_records",
    "read_merchant_data", "read_catalog", "set_catalog_availability",
]  # fmt: skip


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_known_protocol_version_is_accepted(agent: Agent, version: str) -> None:
    result = (await agent.request("initialize", INITIALIZE_PARAMS | {"protocolVersion": version}))[
        "result"
    ]
    assert result["protocolVersion"] == version
    assert result["serverInfo"]["name"] == "venue-control"
    assert list(result["capabilities"]) == ["tools"]
    assert "business_context" in result["instructions"]


async def test_initialize_with_an_unknown_version_returns_the_latest_version(agent: Agent) -> None:
    result = (
        await agent.request("initialize", INITIALIZE_PARAMS | {"protocolVersion": "1999-01-01"})
    )["result"]
    assert result["protocolVersion"] == "2025-11-25"


async def test_ping_and_tools_list_require_no_initialize(agent: Agent) -> None:
    assert (await agent.request("ping"))["result"] == {}
    tools = (await agent.request("tools/list", {}))["result"]["tools"]
    assert [tool["name"] for tool in tools] == TOOLS
    for tool in tools:
        assert tool["inputSchema"]["additionalProperties"] is False
        assert tool["outputSchema"]["type"] == "object"
        assert tool["annotations"]["readOnlyHint"] is (tool["name"] != TOOLS[-1])


async def test_a_request_that_contains_its_protocol_version_is_served(agent: Agent) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = (
        '{"jsonrpc":"2.0","id":"a","method":"server/discover","params":{"_meta":'
        + str(meta).replace("'", '"')
        + "}}"
    )
    reply = await agent.send(body, mcp_protocol_version="2026-07-28", mcp_method="server/discover")
    result = reply.json()["result"]
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "venue-control"
    assert "2026-07-28" in result["supportedVersions"]
    wrong = await agent.send(body, mcp_protocol_version="2026-07-28", mcp_method="tools/list")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (200, HEADER_MISMATCH)
    spaced = await agent.send(
        body, mcp_protocol_version="2026-07-28", mcp_method=" server/discover\t"
    )
    assert "result" in spaced.json()


async def test_a_repeated_routing_header_is_refused(agent: Agent) -> None:
    reply = await agent.service.http.post(
        PATH,
        content=PING,
        headers=[
            ("authorization", f"Bearer {agent.service.write_key}"),
            ("content-type", "application/json"),
            ("mcp-protocol-version", "2025-11-25"),
            ("mcp-protocol-version", "2025-06-18"),
        ],
    )
    assert (reply.status_code, reply.json()["error"]["code"]) == (200, HEADER_MISMATCH)


async def test_the_list_of_tools_has_one_page_and_accepts_no_cursor(agent: Agent) -> None:
    assert (await agent.request("tools/list", {"cursor": "x"}))["error"]["code"] == -32602


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25", "2026-07-28"])
async def test_the_list_of_tools_has_the_form_of_the_requested_version(
    agent: Agent, version: str
) -> None:
    params: dict[str, Any] = {}
    headers = {"mcp_protocol_version": version}
    if has_metadata := version == "2026-07-28":
        prefix = "io.modelcontextprotocol"
        meta = {f"{prefix}/protocolVersion": version, f"{prefix}/clientCapabilities": {}}
        params, headers["mcp_method"] = {"_meta": meta}, "tools/list"
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params})
    first, second = [(await agent.send(body, **headers)).json() for _ in range(2)]
    assert first == second
    assert [tool["name"] for tool in first["result"]["tools"]] == TOOLS
    assert ("_meta" in first["result"]) is has_metadata


async def test_wrong_params_are_refused_even_after_a_valid_list_of_tools(agent: Agent) -> None:
    for _ in range(2):
        assert "result" in await agent.request("tools/list", {})
        for params in ({"cursor": "x"}, {"cursor": 1}, {"_meta": {"progressToken": []}}):
            assert (await agent.request("tools/list", params))["error"]["code"] == -32602


async def test_an_unknown_version_header_returns_the_supported_versions(agent: Agent) -> None:
    reply = await agent.send(PING, mcp_protocol_version="1999-01-01")
    assert reply.status_code == 200
    error = reply.json()["error"]
    assert error["code"] == UNSUPPORTED_VERSION
    assert "2025-11-25" in error["data"]["supported"]


@pytest.mark.parametrize("method", ["resources/list", "logging/setLevel", "x", "initialized"])
async def test_an_unknown_method_returns_the_error_method_not_found(
    agent: Agent, method: str
) -> None:
    params = {"level": "info"} if method == "logging/setLevel" else None
    assert (await agent.request(method, params))["error"]["code"] == -32601


async def test_a_notification_is_accepted_without_a_reply(agent: Agent) -> None:
    reply = await agent.send(NOTIFICATION)
    assert (reply.status_code, reply.content) == (202, b"")


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH"])
async def test_only_post_is_served(agent: Agent, method: str) -> None:
    reply = await agent.service.http.request(method, PATH)
    assert (reply.status_code, reply.headers["allow"]) == (405, "POST")
    if method != "HEAD":
        assert reply.json() == {"error": "only POST is served here"}


@pytest.mark.parametrize(
    "authorization", [None, "Bearer", "Bearer x", "Basic eDp5", "Bearer vck_" + "a" * 43]
)
async def test_a_refusal_without_a_valid_credential_contains_the_metadata_url(
    agent: Agent, authorization: str | None
) -> None:
    headers = {"content-type": "application/json"}
    if authorization is not None:
        headers["authorization"] = authorization
    reply = await agent.service.http.post(PATH, content=PING, headers=headers)
    assert reply.status_code == 401
    assert list(reply.json()) == ["error"]
    challenge = f'Bearer resource_metadata="http://service{METADATA_PATH}"'
    assert reply.headers["www-authenticate"] == challenge


@pytest.mark.parametrize(
    ("host", "origin"),
    [("venues.example", "https://venues.example"), ("127.0.0.1:8080", "http://127.0.0.1:8080"),
     ("[::1]:80", "http://[::1]:80"), ('x"y', "http://localhost")],
)  # fmt: skip
async def test_the_metadata_url_has_the_origin_of_the_request(
    agent: Agent, host: str, origin: str
) -> None:
    headers = {"host": host, "content-type": "application/json"}
    if origin.startswith("https"):
        headers["x-forwarded-proto"] = "https"
    reply = await agent.service.http.post(PATH, content=PING, headers=headers)
    challenge = f'Bearer resource_metadata="{origin}{METADATA_PATH}"'
    assert reply.headers["www-authenticate"] == challenge


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost.evil.example"}, 403),
        ({"origin": "http://localhost:6274"}, 200),
        ({"origin": "http://127.0.0.1"}, 200),
        ({"content-type": "text/plain"}, 415),
    ],
)
async def test_foreign_origins_and_other_media_types_are_refused(
    agent: Agent, headers: dict[str, Any], status: int
) -> None:
    header_arguments = {name.replace("-", "_"): value for name, value in headers.items()}
    reply = await agent.send(PING, **header_arguments)
    assert reply.status_code == status
    if status != 200:
        assert list(reply.json()) == ["error"]


async def test_a_body_that_is_too_large_is_refused(agent: Agent) -> None:
    reply = await agent.send(b" " * 65_537)
    assert (reply.status_code, list(reply.json())) == (413, ["error"])
