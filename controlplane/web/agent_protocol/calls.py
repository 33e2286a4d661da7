"""Calls of tools. The caller is looked up again in the transaction of each call."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from agent.wire import codec
from agent.wire.validation import ValidationError
from controlplane.accounts.key_store import still_valid
from controlplane.agent_protocol.tools.tool import Tool, ToolError
from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import Refusal, unauthenticated
from controlplane.web.agent_protocol.envelope import INVALID_PARAMS, Json, RpcError
from controlplane.web.core import Core
from controlplane.web.pipeline import run

ISSUES_MAX = 8
FREE_S = 0.25
"""Processor seconds of a call that are not charged to its key. Most calls take a tenth."""
HIDDEN = "there is no such thing, or this credential has no access to it"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an admitted caller."""

    core: Core
    caller: Caller

    async def run(self, tool: Tool[Any], arguments: Json) -> tuple[str, Json]:
        """Return a short text and the structured result.

        Raises:
            ToolError: a model can correct the call.
            RpcError: it cannot.
            Refusal: the credential has ended.
        """
        parsed = read_arguments(tool, arguments)

        def work(context: RequestContext) -> tuple[str, Json]:
            if tool.writes and not context.caller.can_write:
                raise RpcError(
                    INVALID_PARAMS,
                    f"{tool.name} needs an API key with a write grant, and this credential is"
                    " read-only. Ask the merchant for such a key.",
                )
            return tool.answer(context, parsed)

        try:
            return await run(
                self.core,
                self.caller,
                work,
                tuple,
                writes=tool.writes,
                renew=renewed,
                free_s=FREE_S,
            )
        except Refusal as refusal:
            raise _rpc_error(refusal) from None


def renewed(session: Session, caller: Caller, now: datetime) -> Caller:
    """Return what the caller may do now. Raises the refusal of a credential that has ended."""
    found = still_valid(session, caller, now)
    if found is None:
        raise unauthenticated()
    return found


def read_arguments(tool: Tool[Any], arguments: Json) -> Any:
    """Return the arguments as the tool's model. Raises ToolError."""
    try:
        return codec.validate(arguments, tool.arguments)
    except ValidationError as error:
        said = [
            f"{issue.where or 'arguments'} {issue.reason}" for issue in error.issues[:ISSUES_MAX]
        ]
        known = ", ".join(tool.input_schema.get("properties", {})) or "none"
        raise ToolError(f"{'; '.join(said)}. {tool.name} takes: {known}.") from None


def _rpc_error(refusal: Refusal) -> Exception:
    """Return what the caller of a tool gets instead of a refusal."""
    if refusal.code in {"foreign_location"} or refusal.code.endswith("_not_found"):
        return RpcError(INVALID_PARAMS, HIDDEN)
    if refusal.errors is not None:
        said = "; ".join(f"{name} {' and '.join(why)}" for name, why in refusal.errors.items())
        return ToolError(f"{said}. Change the named arguments and call again.")
    if refusal.code == "invalid_cursor":
        return ToolError(f"{refusal.detail}. Leave cursor out to begin anew.")
    return refusal
