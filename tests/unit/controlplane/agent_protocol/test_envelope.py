"""Tests that the service accepts every request envelope that the contract permits."""

import json
from typing import Any

import pytest

from tests.unit.controlplane.agent_protocol.agent import Agent

TASK = "io.modelcontextprotocol/related-task"


@pytest.mark.parametrize("request_id", [1, 0, -(2**53) + 1, 2**53 - 1, "a", "", "7"])
async def test_the_reply_has_the_string_or_integer_id_of_the_request(
    agent: Agent, request_id: int | str
) -> None:
    reply = await agent.send(json.dumps({"jsonrpc": "2.0", "id": request_id, "method": "ping"}))
    assert reply.json() == {"jsonrpc": "2.0", "id": request_id, "result": {}}
    wrong = await agent.send(json.dumps({"jsonrpc": "2.0", "id": request_id, "method": "x"}))
    assert wrong.json()["id"] == request_id


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"any": {"extra": ["key"]}},
        {"_meta": {}},
        {"_meta": {"any": 1}},
        {"_meta": {"progressToken": "a"}},
        {"_meta": {"progressToken": 1}},
        {"_meta": {TASK: {"taskId": "t"}}},
    ],
)
async def test_params_are_optional_and_can_have_any_keys(
    agent: Agent, params: dict[str, Any]
) -> None:
    assert (await agent.request("ping", params))["result"] == {}
    call_params = {"name": "business_context", "arguments": {}} | params
    assert (await agent.request("tools/call", call_params))["result"]["isError"] is False
