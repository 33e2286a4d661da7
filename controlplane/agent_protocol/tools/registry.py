"""The seven tools, in the order of their listing."""

from typing import Final

from controlplane.agent_protocol.tools.business_context import BUSINESS_CONTEXT
from controlplane.agent_protocol.tools.business_records import READ_BUSINESS_RECORDS
from controlplane.agent_protocol.tools.catalog import READ_CATALOG, SET_CATALOG_AVAILABILITY
from controlplane.agent_protocol.tools.description import DESCRIBE_BUSINESS_DATA
from controlplane.agent_protocol.tools.merchant_data import READ_MERCHANT_DATA
from controlplane.agent_protocol.tools.query_sales import QUERY_SALES
from controlplane.agent_protocol.tools.tool import Tool

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
