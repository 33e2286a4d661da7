"""The seven tools, in the order of their listing."""

from typing import Any, Final

from agent.wire.codec import to_plain
from controlplane.agent_protocol.tools.business_context import BUSINESS_CONTEXT
from controlplane.agent_protocol.tools.business_records import READ_BUSINESS_RECORDS
from controlplane.agent_protocol.tools.catalog import READ_CATALOG, SET_CATALOG_AVAILABILITY
from controlplane.agent_protocol.tools.description import DESCRIBE_BUSINESS_DATA
from controlplane.agent_protocol.tools.merchant_data import READ_MERCHANT_DATA
from controlplane.agent_protocol.tools.query_sales import QUERY_SALES
from controlplane.agent_protocol.tools.tool import Json, Tool
from controlplane.operation.context import RequestContext

TOOLS: Final[dict[str, Tool]] = {
    tool.name: tool
    for tool in (
        BUSINESS_CONTEXT,
        DESCRIBE_BUSINESS_DATA,
        QUERY_SALES,
        READ_BUSINESS_RECORDS,
        READ_MERCHANT_DATA,
        READ_CATALOG,
        SET_CATALOG_AVAILABILITY,
    )
}


def run_named(name: str, context: RequestContext, arguments: Any) -> tuple[str, Json]:
    """Run the tool with this name. Return a short text, and the result as plain JSON values.

    For long calls, a separate process runs this function. Therefore the arguments and the result
    must be picklable.
    """
    text, result = TOOLS[name].run(context, arguments)
    return text, to_plain(result)
