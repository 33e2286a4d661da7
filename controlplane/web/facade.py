"""The operations of the facade that answer with one JSON body."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeVar

from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agent.wire.base import Message
from agent.wire.codec import encode
from controlplane.operation.bodies import parse_body
from controlplane.operation.body_reader import LARGE_BYTES, Parse
from controlplane.operation.caller import Caller
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import Refusal
from controlplane.operation.operation import Procedure
from controlplane.storage.notifications import publish
from controlplane.storage.transactions import Transactions
from controlplane.web.accounts.cookies import address_of
from controlplane.web.auth import admit, read_body
from controlplane.web.core import Core

Read = TypeVar("Read")
DEPRECATED_SINCE_S = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp())
"""RFC 9745: a moment in seconds since 1970. The contract names no date; ours is that of the first
release which served these operations, deprecated from the beginning."""
PAGE_MAX: Final = 200
"""Records of a page, where the caller asks for so many."""
_MAX_PAGE_SIZE: Final = re.compile(r"(?:odata\.)?maxpagesize\s*=\s*\"?0*([1-9][0-9]{0,8})\"?", re.I)
"""The preference of OData 4.01 (Part 1, 8.2.8.6), one of a list (RFC 7240)."""


class OperationEndpoint:
    """An ASGI endpoint for one operation."""

    def __init__(self, core: Core, operation: Procedure) -> None:
        self._core = core
        self._operation = operation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        row = self._operation
        caller = await admit(
            self._core,
            request,
            writes=row.writes,
            of_person=row.of_person,
            judges_role=row.judges_role,
            has_body=row.body is not None,
        )
        with self._core.fairness.call(caller):
            body = await read_body(self._core, request)
            size = preferred_page_size(request.headers.getlist("prefer"))
            address = address_of(self._core, request)
            content = await run_operation(
                self._core, self._operation, caller, body, size, address=address
            )
        response = Response(
            content, media_type="application/json", headers=deprecation(self._operation.successor)
        )
        await response(scope, receive, send)


def deprecation(successor: str | None) -> dict[str, str]:
    """Return what tells a caller that the operation is deprecated, and by what it was replaced."""
    if successor is None:
        return {}
    return {
        "Deprecation": f"@{DEPRECATED_SINCE_S}",
        "Link": f'<{successor}>; rel="successor-version"',
    }


def preferred_page_size(headers: Sequence[str]) -> int | None:
    """Return what ``Prefer: maxpagesize=N`` asks for, cut to ``PAGE_MAX``; None where nothing does.

    The contract has no word for a page's size, and an unknown key of a body is an error. Who does
    not know a preference passes over it (RFC 7240), so a caller may send it to any service.
    """
    for each in ",".join(headers).split(","):
        if found := _MAX_PAGE_SIZE.fullmatch(each.partition(";")[0].strip()):
            return min(int(found[1]), PAGE_MAX)
    return None


async def run_operation(
    core: Core,
    operation: Procedure,
    caller: Caller,
    body: bytes,
    page_size: int | None = None,
    *,
    address: str = "",
) -> bytes:
    """Return the JSON reply. Streams are woken only after the transaction is committed."""
    is_large = len(body) > LARGE_BYTES
    from_large = await parse_large(core, caller, operation.parse, body) if is_large else None
    now = core.clock()

    def job(transactions: Transactions) -> tuple[bytes, RequestContext]:
        parsed = from_large if is_large else operation.parse(body)

        def work(session: Session) -> tuple[Message | None, RequestContext]:
            context = RequestContext(session, caller, now, core.settings, page_size, address)
            reply = operation.run(context, parsed)
            publish(session, context.woken, core.name)
            return reply, context

        transact = transactions.write if operation.writes else transactions.read
        reply, context = transact(work)
        # Here and not on the event loop: the hours of many locations are megabytes.
        return encode(reply), context

    content, context = await core.run(job)
    core.feeds.notify(context.woken)
    for kind, outcome in context.taken:
        core.metrics.received(kind, outcome)
    core.console_feeds.notify(
        caller.organization_id, context.changed, is_reordered=context.is_reordered
    )
    return content


async def parse_fairly(core: Core, caller: Caller, model: type[Read], body: bytes) -> Read:
    """Return ``body``, which is usually small, as ``model``. Raises the refusal."""
    if len(body) <= LARGE_BYTES:
        return parse_body(model, body)
    made: Read = await parse_large(core, caller, partial(parse_body, model), body)
    return made


async def parse_large(core: Core, caller: Caller, parse: Parse, body: bytes) -> Any:
    """Return what ``parse`` makes of a large body, which its key is charged for."""
    made, took_s = await core.body_reader.read(parse, body)
    core.fairness.charge(caller, took_s)
    if isinstance(made, Refusal):
        raise made
    return made
