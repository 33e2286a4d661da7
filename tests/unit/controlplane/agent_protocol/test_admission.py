"""Tests of what applies to every call: valid credentials, rate limits, metrics and errors."""

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from controlplane.accounts.keys.key_store import revoke_key
from controlplane.accounts.oauth.metadata import RESOURCE_PATH as PATH
from controlplane.agent_protocol.tools.registry import TOOLS
from controlplane.operation.fairness import FREE_S
from controlplane.settings import Settings
from controlplane.storage.database import Database
from controlplane.storage.tables import ApiKey
from controlplane.web.agent_protocol import dispatch
from tests.unit.controlplane.accounts.people import end_membership, make_user
from tests.unit.controlplane.accounts.test_live_permissions import own_key
from tests.unit.controlplane.agent_protocol.agent import Agent
from tests.unit.controlplane.running_service import FakeClock, service_on

PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'


@pytest.fixture
async def limited_agent(sales_database: Database) -> AsyncIterator[Agent]:
    """An AI assistant of a service that permits a burst of three calls, then one per second."""
    settings = Settings(rate_per_s=1, burst=3, refusal_delay_s=0, calls_at_once=2)
    async with service_on(sales_database, settings, FakeClock()) as service:
        yield Agent(service)


async def test_a_revoked_key_cannot_call_tools_even_if_it_is_cached(agent: Agent) -> None:
    key = agent.service.make_key()
    key_id = agent.service.caller(key).key_id
    await agent.call("business_context", key)
    now = agent.service.clock()
    # Simulate a poll, because the service uses cached keys only for a few seconds after a poll.
    agent.service.core.keys.apply_poll((), {}, agent.service.core.keys.now_s())
    await agent.call("business_context", key)
    agent.service.database.write(lambda session: revoke_key(session, key_id, now))
    assert agent.service.core.keys.find(key) is not None
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "query_sales"}}
    reply = await agent.send(json.dumps(body), key)
    assert reply.status_code == 401
    assert "resource_metadata=" in reply.headers["www-authenticate"]


async def test_a_removed_member_cannot_call_tools_even_if_the_key_is_cached(agent: Agent) -> None:
    user = make_user(agent.service, "leaving@example.com")
    key = own_key(agent.service, user)
    await agent.call("business_context", key)
    # Simulate a poll, because the service uses cached keys only for a few seconds after a poll.
    agent.service.core.keys.apply_poll((), {user.id: 1}, agent.service.core.keys.now_s())
    await agent.call("business_context", key)
    end_membership(agent.service, user, "org-0001")
    assert agent.service.core.keys.find(key) is not None
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "query_sales"}}
    assert (await agent.send(json.dumps(body), key)).status_code == 401


async def test_a_cached_key_cannot_write_after_its_write_grant_is_revoked(agent: Agent) -> None:
    key = agent.service.make_key()
    key_id = agent.service.caller(key).key_id
    agent.service.core.keys.apply_poll((), {}, agent.service.core.keys.now_s())
    good = (await agent.call("read_catalog", key, limit=1))["rows"][0]

    def revoke_write_grant(session: object) -> None:
        row = session.get(ApiKey, key_id)  # type: ignore[attr-defined]
        row.can_write = False

    agent.service.database.write(revoke_write_grant)
    assert agent.service.core.keys.find(key) is not None
    arguments = {"goodId": good["goodId"], "status": "inactive"}
    error = await agent.protocol_error("set_catalog_availability", key, **arguments)
    assert "write grant" in error["message"]


async def test_too_many_calls_return_429_with_retry_after(limited_agent: Agent) -> None:
    replies = [await limited_agent.send(PING) for _ in range(5)]
    assert [reply.status_code for reply in replies] == [200, 200, 200, 429, 429]
    assert list(replies[-1].json()) == ["error"]
    assert int(replies[-1].headers["retry-after"]) >= 1


async def test_processor_time_of_slow_calls_is_charged(sales_database: Database) -> None:
    settings = Settings(processing_share=0.1, processing_burst_s=1, refusal_delay_s=0)
    # Each call takes ``FREE_S`` seconds of processor time, which are not charged.
    times_s = itertools.count(step=FREE_S)
    clock = FakeClock()
    async with service_on(
        sales_database, settings, clock, thread_time=lambda: next(times_s)
    ) as service:
        agent = Agent(service)
        for _ in range(3):
            await agent.call("business_context")
        # The next call is charged 2 s, but the settings permit a key only 1 s.
        times_s = itertools.count(step=FREE_S + 2)
        await agent.call("business_context")
        refused = await agent.send(PING)
        assert (refused.status_code, list(refused.json())) == (429, ["error"])
        clock.advance(20)
        assert (await agent.send(PING)).status_code == 200


async def test_metrics_count_calls_by_operation_and_status(agent: Agent) -> None:
    for _ in range(2):
        await agent.send(PING)
    await agent.service.http.get(PATH)
    registry = agent.service.core.metrics.registry
    for status, count in (("2xx", 2), ("4xx", 1)):
        labels = {"operation": "callMcp", "status": status}
        assert registry.get_sample_value("venue_control_requests_total", labels) == count


async def test_an_internal_error_is_a_json_rpc_error(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_words: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(dispatch, "read_arguments", fail)
    error = await agent.protocol_error("business_context")
    assert (error["code"], list(error["data"])) == (-32603, ["traceId"])
    assert "secret" not in json.dumps(error)
    assert error["data"]["traceId"] in caplog.text


async def test_concurrent_tool_calls_do_not_affect_each_other(agent: Agent) -> None:
    results = await asyncio.gather(
        *(agent.call("query_sales", groupBy=["day"], period="last7") for _ in range(8)),
        *(agent.call("business_context") for _ in range(8)),
    )
    assert all(result == results[0] for result in results[:8])
    assert all(result == results[8] for result in results[8:])


@pytest.mark.medium
def test_the_mcp_sdk_is_not_imported_before_the_first_call() -> None:
    program = (
        "import sys, controlplane.web.app, controlplane.cli.main;"
        "sys.exit(bool({'mcp', 'mcp_types', 'opentelemetry'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize("tool", TOOLS)
def test_tool_schemas_refuse_unknown_arguments_and_define_every_type(tool: str) -> None:
    schema = TOOLS[tool].input_schema
    assert schema["additionalProperties"] is False
    for field in schema.get("properties", {}).values():
        assert "type" in field or "enum" in field or "$ref" in field or "anyOf" in field, field
    assert len(json.dumps(TOOLS[tool].output_schema)) < 20_000
