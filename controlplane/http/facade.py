"""The operations of the facade that answer with one JSON body."""

import asyncio
import re
import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, Final

from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agent.wire.base import Message
from agent.wire.codec import encode
from controlplane.accounts.api_keys import Caller
from controlplane.core import Core
from controlplane.http.auth import admit, read_body
from controlplane.remote_control.context import RequestContext
from controlplane.remote_control.registry import Operation
from controlplane.storage.database import Database
from controlplane.storage.notifications import publish

LARGE_BYTES = 65_536
PAGE_MAX: Final = 200
"""Records of a page, where the caller asks for so many."""
_MAX_PAGE_SIZE: Final = re.compile(r"(?:odata\.)?maxpagesize\s*=\s*\"?0*([1-9][0-9]{0,8})\"?", re.I)
"""The preference of OData 4.01 (Part 1, 8.2.8.6), one of a list (RFC 7240)."""


class OperationEndpoint:
    """An ASGI endpoint for one operation."""

    def __init__(self, core: Core, operation: Operation) -> None:
        self._core = core
        self._operation = operation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        caller = await admit(self._core, request, writes=self._operation.writes)
        with self._core.fairness.call(caller):
            body = await read_body(self._core, request)
            size = preferred_page_size(request.headers.getlist("prefer"))
            content = await run_operation(self._core, self._operation, caller, body, size)
        await Response(content, media_type="application/json")(scope, receive, send)


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
    operation: Operation,
    caller: Caller,
    body: bytes,
    page_size: int | None = None,
) -> bytes:
    """Return the JSON reply. Streams are woken only after the transaction is committed."""
    now, loop = core.clock(), asyncio.get_running_loop()

    is_large = len(body) > LARGE_BYTES

    def parse() -> Any:
        began_s = time.thread_time()
        try:
            return operation.parse(body)
        finally:
            if is_large:
                took_s = time.thread_time() - began_s
                loop.call_soon_threadsafe(core.fairness.charge, caller, took_s)

    def job(database: Database) -> tuple[Message | None, RequestContext]:
        parsed = parse()

        def work(session: Session) -> tuple[Message | None, RequestContext]:
            context = RequestContext(session, caller, now, core.settings, page_size)
            reply = operation.run(context, parsed)
            publish(session, context.woken, core.name)
            return reply, context

        return database.write(work) if operation.writes else database.read(work)

    # Reading a large body keeps Python to itself for tens of milliseconds: one at a time.
    async with core.large_bodies if is_large else nullcontext():
        reply, context = await core.run(job)
    core.feeds.notify(context.woken)
    core.console_feeds.notify(
        caller.organization_id, context.changed, is_reordered=context.is_reordered
    )
    return encode(reply)
