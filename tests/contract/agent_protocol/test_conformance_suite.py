"""Runs the official MCP conformance suite: exactly the permitted scenarios must pass.

`PERMITTED` lists the scenarios that the contract permits. `FORBIDDEN` lists all others, with the
sentence of the contract that forbids each.
"""

import asyncio
import re

import pytest

from tests.contract.agent_protocol.served import ServedApp
from tests.prerequisites import mcp_conformance

pytestmark = [pytest.mark.medium, pytest.mark.needs("mcp-conformance")]
WITHIN_S = 120
_SUMMARY = re.compile(r"^\S (\S+): (\d+) passed, (\d+) failed$", re.MULTILINE)

PERMITTED = {"server-initialize", "ping", "tools-list", "dns-rebinding-protection"}
SEVEN_TOOLS = (
    "`tools/call` invokes one of these tools: business_context, describe_business_data,"
    " query_sales, read_business_records, read_merchant_data, read_catalog,"
    " set_catalog_availability."
)
NO_STREAM = "Only POST is served; the server opens no SSE stream."
STATELESS = (
    "A Model Context Protocol (MCP) server for AI agents: JSON-RPC 2.0 over streamable HTTP,"
    " stateless per request."
)
TOOLS_ONLY = f"`tools/list` publishes the typed tool contract. {SEVEN_TOOLS}"
FORBIDDEN = {
    # These scenarios call tools that only the suite's own server has.
    "tools-call-simple-text": SEVEN_TOOLS,
    "tools-call-image": SEVEN_TOOLS,
    "tools-call-audio": SEVEN_TOOLS,
    "tools-call-embedded-resource": SEVEN_TOOLS,
    "tools-call-mixed-content": SEVEN_TOOLS,
    "tools-call-error": SEVEN_TOOLS,
    "json-schema-2020-12": SEVEN_TOOLS,
    # These expect messages to the client before the reply.
    "tools-call-with-logging": NO_STREAM,
    "tools-call-with-progress": NO_STREAM,
    "tools-call-sampling": NO_STREAM,
    "tools-call-elicitation": NO_STREAM,
    "elicitation-sep1034-defaults": NO_STREAM,
    "elicitation-sep1330-enums": NO_STREAM,
    "server-sse-polling": NO_STREAM,
    "server-sse-multiple-streams": NO_STREAM,
    # These expect state between two requests.
    "logging-set-level": STATELESS,
    "resources-subscribe": STATELESS,
    "resources-unsubscribe": STATELESS,
    # These expect features other than tools.
    "completion-complete": TOOLS_ONLY,
    "resources-list": TOOLS_ONLY,
    "resources-read-text": TOOLS_ONLY,
    "resources-read-binary": TOOLS_ONLY,
    "resources-templates-read": TOOLS_ONLY,
    "prompts-list": TOOLS_ONLY,
    "prompts-get-simple": TOOLS_ONLY,
    "prompts-get-with-args": TOOLS_ONLY,
    "prompts-get-embedded-resource": TOOLS_ONLY,
    "prompts-get-with-image": TOOLS_ONLY,
}


async def run_suite(*arguments: str) -> str:
    """Run the suite, and return its output."""
    process = await asyncio.create_subprocess_exec(
        *mcp_conformance(),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        text, _ = await asyncio.wait_for(process.communicate(), WITHIN_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    return text.decode()


async def test_each_scenario_is_permitted_or_forbidden() -> None:
    output = await run_suite("list", "--server")
    listed = {line.split()[1] for line in output.splitlines() if line.startswith("  - ")}
    assert listed == PERMITTED | FORBIDDEN.keys()
    assert not PERMITTED & FORBIDDEN.keys()


async def test_exactly_the_permitted_conformance_scenarios_pass(served: ServedApp) -> None:
    output = await run_suite("server", "--url", served.url, "--suite", "all")
    counts = {
        name: (int(passed_count), int(failed_count))
        for name, passed_count, failed_count in _SUMMARY.findall(output)
    }
    assert counts.keys() == PERMITTED | FORBIDDEN.keys(), output[-3000:]
    passed = {
        name
        for name, (passed_count, failed_count) in counts.items()
        if passed_count and not failed_count
    }
    assert passed == PERMITTED, output[-3000:]
