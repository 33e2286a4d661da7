"""A tool's call: who asks is looked up anew in the transaction that answers."""

import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from agent.wire import codec
from agent.wire.validation import ValidationError
from controlplane.accounts.key_store import still_valid
from controlplane.agent_protocol.tools.tool import Tool, ToolContext, ToolError
from controlplane.operation.caller import Caller
from controlplane.operation.errors import Refusal, unauthenticated
from controlplane.storage.transactions import Transactions
from controlplane.web.agent_protocol.envelope import INVALID_PARAMS, Json, RpcError
from controlplane.web.core import Core

ISSUES_MAX = 8
FREE_S = 0.25
"""Processor time that a call may take before its key is charged for it: most take a tenth."""
HIDDEN = "there is no such thing, or this credential has no access to it"


@dataclass(frozen=True, slots=True)
class Call:
    """``caller`` as they were admitted."""

    core: Core
    caller: Caller

    async def run(self, tool: Tool[Any], arguments: Json) -> tuple[str, Json]:
        """Return a short text and the structured content. Raises ToolError, which a model can act
        on, RpcError, or the refusal of a credential that has ended."""
        now, settings = self.core.clock(), self.core.settings

        def job(transactions: Transactions) -> tuple[tuple[str, Json], float]:
            began_s = time.thread_time()
            asked = read_arguments(tool, arguments)

            def work(session: Session) -> tuple[str, Json]:
                caller = still_valid(session, self.caller, now)
                if caller is None:
                    raise unauthenticated()
                if tool.writes and not caller.can_write:
                    raise RpcError(
                        INVALID_PARAMS,
                        f"{tool.name} needs an API key with a write grant; this credential reads"
                        " only. Ask the merchant for such a key.",
                    )
                return tool.answer(ToolContext(session, caller, now, settings), asked)

            answered = (transactions.write if tool.writes else transactions.read)(work)
            return answered, time.thread_time() - began_s

        try:
            answered, took_s = await self.core.run(job)
        except Refusal as refusal:
            raise _told(refusal) from None
        if took_s > FREE_S:
            self.core.fairness.charge(self.caller, took_s - FREE_S)
        return answered


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


def _told(refusal: Refusal) -> Exception:
    """Return what a caller of a tool learns of a refusal that an operation would give."""
    if refusal.code in {"foreign_location"} or refusal.code.endswith("_not_found"):
        return RpcError(INVALID_PARAMS, HIDDEN)
    if refusal.errors is not None:
        said = "; ".join(f"{name} {' and '.join(why)}" for name, why in refusal.errors.items())
        return ToolError(f"{said}. Change the named arguments and call again.")
    if refusal.code == "invalid_cursor":
        return ToolError(f"{refusal.detail}. Leave cursor out to begin anew.")
    return refusal
