"""The seven tools, in the order in which they are listed."""

from typing import Any, Final

from controlplane.agent_protocol.tools.business_context import BUSINESS_CONTEXT
from controlplane.agent_protocol.tools.tool import Tool

TOOLS: Final[dict[str, Tool[Any]]] = {
    tool.name: tool
    for tool in (
        BUSINESS_CONTEXT,
    )
}
