"""The seven tools of the agent protocol, and its refusals."""

from typing import Any, Final

from controlplane.accounts.oauth.metadata import RESOURCE_PATH as PATH
from tests.contract.service.calls.recorder import NEVER, Json, Recorder

TOOL: Final = "tool "
"""Prefix of the names of examples of tools."""
MISTAKE: Final = "an invalid argument of a tool"
FOREIGN: Final = "an object that the caller has no access to"
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


async def record(kept: Recorder) -> None:
    results: Json = {}
    for name, arguments in REQUESTS:
        results = await _call(kept, name, arguments, TOOL + name)
    good = results["result"]["structuredContent"]["rows"][0]["goodId"]
    change = "set_catalog_availability"
    await _call(kept, change, {"goodId": good, "status": "inactive"}, TOOL + change)
    await _call(kept, "query_sales", {"period": "lastWeek"}, MISTAKE)
    await _call(kept, change, {"goodId": str(NEVER), "status": "active"}, FOREIGN)
    await _send(kept, [_request("ping", {})], MALFORMED)
    await _send(kept, _request("ping", {}), NO_CREDENTIAL, secret="")
    await kept.call("GET", PATH, of=OTHER_METHOD)


async def _call(kept: Recorder, tool: str, arguments: Json, of: str) -> Any:
    return await _send(kept, _request("tools/call", {"name": tool, "arguments": arguments}), of)


async def _send(kept: Recorder, body: Any, of: str, secret: str | None = None) -> Any:
    given = kept.service.write_key if secret is None else secret
    return await kept.call("POST", PATH, sent=body, secret=given, of=of)


def _request(method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
