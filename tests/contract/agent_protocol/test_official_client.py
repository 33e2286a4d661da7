"""The official Python client lists the seven tools over a socket, and calls each of them.

The client validates structured content against the output schemas. It also receives the errors of
wrong arguments.
"""

from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests.contract.agent_protocol.served import ServedApp

pytestmark = pytest.mark.medium

CALLS: dict[str, dict[str, Any]] = {
    "business_context": {},
    "describe_business_data": {"dataset": "salesFigures"},
    "query_sales": {"period": "last7", "groupBy": ["day"]},
    "read_business_records": {"dataset": "sales", "limit": 3},
    "read_merchant_data": {"section": "locations"},
    "read_catalog": {"limit": 3},
}


# The mode selects the version of the protocol. "legacy" uses the `initialize` handshake of earlier
# versions. "auto" uses the newest version that the service offers. A date selects the version with
# exactly this date.
@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
async def test_the_official_client_lists_and_calls_all_seven_tools(
    served: ServedApp, mode: str
) -> None:
    headers = {"authorization": f"Bearer {served.api_key}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(served.url, http_client=http), mode=mode) as client,
    ):
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert tools == [*CALLS, "set_catalog_availability"]
        for name, arguments in CALLS.items():
            result = await client.call_tool(name, arguments)
            assert not result.is_error
            assert result.structured_content
        good = (await client.call_tool("read_catalog", {"limit": 1})).structured_content["rows"][0]
        change = {"goodId": good["goodId"], "status": "inactive"}
        changed = await client.call_tool("set_catalog_availability", change)
        assert changed.structured_content["changed"] is True
        mistake = await client.call_tool("query_sales", {"period": "lastYear"})
        assert mistake.is_error
        with pytest.raises(MCPError, match="the object does not exist"):
            await client.call_tool("query_sales", {"locations": ["loc-none"]})
