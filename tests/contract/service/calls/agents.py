"""Calls of the seven tools of the agent protocol, and calls that it refuses."""

from typing import Any, Final

from controlplane.accounts.oauth.metadata import RESOURCE_PATH as PATH
from tests.contract.service.calls.recorder import UNKNOWN_ID, Json, Recorder

TOOL: Final = "tool "
"""Prefix of the title of each example that calls a tool. The next five constants are the titles of
further examples.
"""
MISTAKE: Final = "an invalid argument of a tool"
UNKNOWN_OBJECT: Final = "an object that does not exist"
MALFORMED: Final = "a body that is not a request"
NO_CREDENTIAL: Final = "401 of the agent protocol"
OTHER_METHOD: Final = "405 of the agent protocol"
REQUESTS: Final[tuple[tuple[str, Json], ...]] = (
    ("business_context", {}),
    ("describe_business_data", {"dataset": "fees"}),
    ("query_sales", {"period": "last7", "groupBy": ["location"], "metrics": ["netCents"]}),
    ("read_business_records", {"dataset": "sales", "filters": {"paymentType": "card"}, "limit": 1}),
    ("read_merchant_data", {"section": "locations"}),
    ("read_catalog", {"status": "active", "limit": 1}),
)


async def record(recorder: Recorder) -> None:
    reply: Json = {}
    for name, arguments in REQUESTS:
        reply = await _call(recorder, name, arguments, TOOL + name)
    # The last reply is that of read_catalog.
    good = reply["result"]["structuredContent"]["rows"][0]["goodId"]
    change = "set_catalog_availability"
    await _call(recorder, change, {"goodId": good, "status": "inactive"}, TOOL + change)
    await _call(recorder, "query_sales", {"period": "lastWeek"}, MISTAKE)
    await _call(recorder, change, {"goodId": str(UNKNOWN_ID), "status": "active"}, UNKNOWN_OBJECT)
    await _send(recorder, [_request("ping", {})], MALFORMED)
    await _send(recorder, _request("ping", {}), NO_CREDENTIAL, secret="")
    await recorder.call("GET", PATH, title=OTHER_METHOD)


async def _call(recorder: Recorder, tool: str, arguments: Json, title: str) -> Any:
    return await _send(
        recorder, _request("tools/call", {"name": tool, "arguments": arguments}), title
    )


async def _send(recorder: Recorder, body: Any, title: str, secret: str | None = None) -> Any:
    credential = recorder.service.write_key if secret is None else secret
    return await recorder.call("POST", PATH, body=body, secret=credential, title=title)


def _request(method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
