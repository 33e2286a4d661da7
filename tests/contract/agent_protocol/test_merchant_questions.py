"""More than twenty questions of a merchant, each answered with at most three tool calls.

The answers use only what `tools/list` publishes. The tests compare them with a recount of the raw
rows, for generated merchants with two currencies.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from agent.wire.codec import encode
from controlplane.sandbox.plan import Plan
from tests import sizes
from tests.contract.agent_protocol.conftest import serving
from tests.contract.agent_protocol.merchant_questions import (
    CALLS_MAX,
    TODAY,
    Assistant,
    Json,
    Question,
    last_report,
    questions,
)
from tests.contract.agent_protocol.raw_rows import RawRows
from tests.contract.agent_protocol.served import ServedApp
from tests.fixtures.payloads import small_venue
from tests.unit.controlplane.simulated_device import SimulatedDevice

pytestmark = pytest.mark.medium
SEEDS = sizes.large_except([1], (1, 2, 3))
MOVED = "Kitchen printer has moved from 192.168.1.50:9100 to 192.168.1.61:9100."
UNREACHED = "The printer Office laser at 192.168.1.90:631 is not reachable."


@pytest.fixture(params=SEEDS)
async def merchant(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ServedApp]:
    plan = Plan(
        seed=request.param,
        locations=4,
        days=690,
        goods=30,
        sales_per_day=4,
        until=TODAY,
        is_awkward=True,
    )
    async with serving(tmp_path, plan=plan) as server:
        yield server


class PublishedTools:
    """The tools as `tools/list` publishes them. Calls and results must fit their schemas."""

    def __init__(self, client: Client, listed: list[Any]) -> None:
        self._client = client
        self._schemas = {
            tool.name: (
                Draft202012Validator(tool.input_schema), Draft202012Validator(tool.output_schema),
            )
            for tool in listed
        }  # fmt: skip

    async def call(self, tool: str, arguments: Json) -> Json:
        inputs, outputs = self._schemas[tool]
        inputs.validate(arguments)
        result = await self._client.call_tool(tool, arguments)
        assert not result.is_error, result
        structured: Json = result.structured_content
        outputs.validate(structured)
        return structured


async def test_a_merchant_gets_right_answers_in_few_calls(
    merchant: ServedApp, tmp_path: Path
) -> None:
    raw = RawRows(tmp_path / "service.db")
    every_question = questions(raw)
    assert len(every_question) >= 20
    assert {entry.currency for entry in raw.entries} == {"AED", "EUR"}
    await send_report(merchant)
    headers = {"authorization": f"Bearer {merchant.api_key}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(merchant.url, http_client=http)) as client,
    ):
        tools = PublishedTools(client, list((await client.list_tools()).tools))
        wrong = {}
        last = Question(
            "What did the last device report find?",
            last_report,
            lambda _: (f"{MOVED} And 1 more finding.", [[MOVED], [UNREACHED]]),
        )
        for question in (*every_question, last):
            assistant = Assistant(tools.call)
            expected = question.recount(raw)
            answer = await question.answer(assistant)
            assert 1 <= assistant.calls <= CALLS_MAX
            assert expected
            if answer != expected:
                wrong[question.text] = (answer, expected)
        assert wrong == {}


async def send_report(merchant: ServedApp) -> None:
    """Enroll a device and submit a report with two findings."""
    base_url = merchant.url.partition("/api/")[0]
    async with httpx2.AsyncClient(base_url=base_url) as http:
        device = await SimulatedDevice(http, merchant.api_key).enrolled()
        reply = await device.submit(json.loads(encode(small_venue())))
        assert reply.status_code == 200, reply.text
