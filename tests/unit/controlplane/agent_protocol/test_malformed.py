"""Tests of invalid requests: each gets the error that the contract defines, never a 5xx status.

`Agent.send` validates the replies against the JSON-RPC envelope.
"""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests import sizes
from tests.unit.controlplane.agent_protocol.agent import Agent

PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
CALL: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
PARSE, INVALID, PARAMS, METHOD = -32700, -32600, -32602, -32601
"""JSON-RPC error codes: parse error, invalid request, invalid params, method not found."""
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022


def ping(**changes: Any) -> str:
    return json.dumps(PING | changes)


def call(params: Any) -> str:
    return json.dumps(CALL | {"params": params})


def ping_without(name: str) -> str:
    return json.dumps({key: value for key, value in PING.items() if key != name})


MISTAKES: list[tuple[bytes | str, int, bool]] = [
    # Each row: the body, the code of the error, and whether the reply has the id of the request.
    (b"", PARSE, False),
    (b"   ", PARSE, False),
    (b"{", PARSE, False),
    (b"\xff\xfe", PARSE, False),
    (b"\xef\xbb\xbf{}", PARSE, False),
    (b"{}}", PARSE, False),
    (b"{'jsonrpc': '2.0'}", PARSE, False),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping",}', PARSE, False),
    (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', PARSE, False),
    (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', PARSE, False),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"a":2}}', PARSE, False),
    (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}', PARSE, False),
    (b"[" * 20_000, PARSE, False),
    (b"[" * 20_000 + b"]" * 20_000, PARSE, False),
    ("null", INVALID, False),
    ("7", INVALID, False),
    ('"ping"', INVALID, False),
    ("true", INVALID, False),
    ("[]", INVALID, False),
    (f"[{json.dumps(PING)}]", INVALID, False),
    (f"[{json.dumps(PING)},{json.dumps(PING)}]", INVALID, False),
    ("{}", INVALID, False),
    (ping_without("jsonrpc"), INVALID, True),
    (ping_without("method"), INVALID, True),
    (ping_without("id"), INVALID, False),
    (ping(jsonrpc="1.0"), INVALID, True),
    (ping(jsonrpc=2.0), INVALID, True),
    (ping(jsonrpc=None), INVALID, True),
    (ping(method=None), INVALID, True),
    (ping(method=""), INVALID, True),
    (ping(method=5), INVALID, True),
    (ping(method=["ping"]), INVALID, True),
    (ping(method="a\ud800"), INVALID, True),
    *((ping(id=value), INVALID, False) for value in (
        None, True, False, 1.0, 1.5, [], [1], {}, {"a": 1}, 2**53, -(2**53), 2**70, "\ud800")),
    ('{"jsonrpc":"2.0","id":1e999,"method":"ping"}', INVALID, False),
    (ping(extra=1), INVALID, True),
    (ping(result={}), INVALID, True),
    (ping(error={"code": 1, "message": ""}), INVALID, True),
    (ping(Params={}), INVALID, True),
    (ping(_meta={}), INVALID, True),
    (ping(**{"\ud800": 1}), INVALID, True),
    ('{"jsonrpc":"2.0","id":1,"result":{}}', INVALID, True),
    *((ping(params=value), INVALID, True) for value in (None, [], [1], 1, "x", True)),
    (ping(params={"a": "\ud800"}), INVALID, True),
    *((ping(params={"_meta": value}), PARAMS, True) for value in (None, [], 1, "x")),
    *((ping(params={"_meta": {"progressToken": value}}), PARAMS, True) for value in (
        None, 1.5, True, [], {})),
    *((ping(params={"_meta": {"io.modelcontextprotocol/related-task": value}}), PARAMS, True)
      for value in (None, "x", {}, {"taskId": 1})),
    (ping(method="nonsense"), METHOD, True),
    (ping(method="tools/listen"), METHOD, True),
    (ping(method="notifications/initialized"), METHOD, True),
    (ping(method="initialize"), PARAMS, True),
    (ping(method="initialize", params={"protocolVersion": 1}), PARAMS, True),
    (ping(method="tools/list", params={"cursor": 5}), PARAMS, True),
    (call({}), PARAMS, True),
    (call({"name": 5}), PARAMS, True),
    (call({"name": "query_sales", "arguments": []}), PARAMS, True),
    (call({"name": "query_sales", "arguments": "x"}), PARAMS, True),
    (call({"name": "nonsense"}), PARAMS, True),
    (call({"name": "query_sales", "arguments": json.loads('{"a":' + "[" * 40 + "]" * 40 + "}")}),
     PARAMS, True),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(MISTAKES)))
async def test_an_invalid_request_gets_the_documented_error_code(agent: Agent, number: int) -> None:
    body, code, has_id = MISTAKES[number]
    reply = await agent.send(body)
    assert reply.status_code == 200
    reply_body = reply.json()
    assert reply_body["error"]["code"] == code, reply_body
    assert ("id" in reply_body) is has_id
    if has_id:
        assert reply_body["id"] == 1


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
methods = st.sampled_from([
    "ping", "initialize", "tools/list", "tools/call", "server/discover", "resources/read",
    "completion/complete", "logging/setLevel", "subscriptions/listen", "tasks/get",
])  # fmt: skip
tools = st.sampled_from(["business_context", "describe_business_data", "query_sales",
                         "read_business_records", "read_merchant_data", "read_catalog",
                         "set_catalog_availability"])  # fmt: skip
arguments = st.dictionaries(
    st.sampled_from(["locations", "period", "from", "to", "groupBy", "metrics", "limit", "dataset",
                     "filters", "cursor", "section", "search", "category", "status", "goodId"]),
    values,
    max_size=4,
)  # fmt: skip
params = (
    values
    | st.fixed_dictionaries({"name": tools | values, "arguments": arguments | values})
    | st.dictionaries(st.sampled_from(["_meta", "name", "cursor", "arguments", "level"]), values)
)
envelopes = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | values,
        "id": st.integers(0, 9) | values,
        "method": methods | values,
        "params": params,
        "strange": values,
    },
)
requests = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "id": st.integers(0, 9), "method": methods, "params": params}
)
cut_bodies = st.builds(
    lambda text, at: text[: at % max(1, len(text))], envelopes.map(json.dumps), st.integers(0)
)
bodies = st.binary(max_size=64) | envelopes.map(json.dumps) | cut_bodies | values.map(json.dumps)
versions = st.sampled_from([None, "2025-11-25", "2026-07-28", "x"])
NO_DEADLINE = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}


@given(body=bodies | requests.map(json.dumps), version=versions)
@hypothesis_settings(max_examples=sizes.examples(500), **NO_DEADLINE)
async def test_any_body_gets_a_json_rpc_reply(
    agent: Agent, body: bytes | str, version: str | None
) -> None:
    headers = {} if version is None else {"mcp_protocol_version": version}
    reply = await agent.send(body, **headers)
    assert reply.status_code in {200, 202}
    if reply.status_code == 200 and "error" in reply.json():
        assert reply.json()["error"]["code"] in {
            PARSE, INVALID, PARAMS, METHOD, HEADER_MISMATCH, UNSUPPORTED_VERSION,
        }  # fmt: skip
