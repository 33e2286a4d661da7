"""The steps of a call: it is authenticated, admitted, parsed, run in one transaction, and encoded.

`Endpoint` takes all these steps for an operation with a JSON reply. The agent protocol, and the
pages and CSV files of the console, use only `run_call` and take the other steps themselves.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeVar

from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agent.wire import codec
from agent.wire.base import Model
from agent.wire.codec import encode
from agent.wire.validation import ValidationError
from controlplane.operation.bodies import refusal_of
from controlplane.operation.context import RequestContext
from controlplane.operation.errors import validation_error
from controlplane.operation.operation import Procedure
from controlplane.storage.notifications import publish
from controlplane.web.admission import (
    Authenticate,
    address_of,
    admit,
    by_key_or_session,
    parse_charged,
    read_body,
)
from controlplane.web.core import Call, Core, Transact

Result = TypeVar("Result")
DEPRECATED_SINCE_S: Final = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp())
"""Time of the deprecation in seconds since 1970 (RFC 9745). The contract names no date. This is the
date of the first release that served the deprecated operations."""
WRONG_PARAMETER: Final = "a parameter does not fit the contract"
PAGE_MAX: Final = 200
"""Largest page size that a caller can request."""
_MAX_PAGE_SIZE: Final = re.compile(r"(?:odata\.)?maxpagesize\s*=\s*\"?0*([1-9][0-9]{0,8})\"?", re.I)
"""The preference for a page size (OData 4.01, part 1, 8.2.8.6), as one item of a ``Prefer`` header
(RFC 7240)."""


class Endpoint:
    """An ASGI endpoint for the operations at one path, by method."""

    def __init__(
        self,
        core: Core,
        *operations: Procedure,
        authenticate: Authenticate = by_key_or_session,
    ) -> None:
        self._core = core
        self._operations = {operation.method: operation for operation in operations}
        methods = list(self._operations)
        self._admit = {
            row.method: partial(
                admit,
                core,
                authenticate=authenticate,
                methods=methods,
                writes=row.writes,
                requires_session=row.requires_session,
                checks_role=row.checks_role,
                has_body=row.has_body,
            )
            for row in operations
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        core, request = self._core, Request(scope, receive)
        # If the method is not served, any operation can be used: `admit` refuses the call.
        method = request.method if request.method in self._operations else next(iter(self._admit))
        row = self._operations[method]
        caller = await self._admit[method](request)
        with core.fairness.call(caller):
            if method == "POST":
                body = await read_body(core, request)
                arguments = await parse_charged(core, caller, row.parse, body)
            else:
                arguments = parse_parameters(row.body, request)
            call = Call(
                caller,
                await core.call_state(),
                row.run,
                encode,
                arguments,
                page_size=preferred_page_size(request.headers.getlist("prefer")),
                address=address_of(core, request),
            )
            content = await run_call(core, call, writes=row.writes, is_long=row.is_long)
        response = Response(
            content,
            row.status,
            media_type="application/json",
            headers=deprecation_headers(row.successor),
        )
        await response(scope, receive, send)


async def run_call(
    core: Core, call: Call[Result], *, writes: bool, is_long: bool = False
) -> Result:
    """Run a call in one transaction. Returns the result of ``call.finish``.

    Streams are notified after the commit.

    Args:
        is_long: whether the call can take long (`Procedure.is_long`). Then its functions must be
            picklable, because a separate process runs them. Otherwise, a thread runs them.
    """
    return await (core.run_long(call) if is_long else _run_short(core, call, writes=writes))


async def _run_short(core: Core, call: Call[Result], *, writes: bool) -> Result:
    def job(transact: Transact) -> tuple[Result, RequestContext]:
        def answer(session: Session) -> tuple[Any, RequestContext]:
            context = call.context(session)
            result = call.work(context, call.arguments)
            publish(session, context.keys_to_notify, core.name)
            return result, context

        result, context = transact("write" if writes else "read", answer)
        # The result is encoded here and not on the event loop, because it can be megabytes long.
        return call.finish(result), context

    finished, context = await core.run_for(call.caller, job, free_s=call.free_s)
    core.feeds.notify(context.keys_to_notify)
    for kind, outcome in context.stored_reports:
        core.metrics.count_report(kind, outcome)
    core.console_feeds.notify(
        call.caller.organization_id, context.changed, is_reordered=context.is_reordered
    )
    return finished


def parse_parameters(model: type[Model] | None, request: Request) -> Any:
    """Return the parameters in path and query as ``model``. Raises a refusal if one is invalid."""
    values = dict(request.path_params)
    for name, value in request.query_params.multi_items():
        if name in values:
            # The caller chooses the name, so it can be long.
            raise validation_error({name[:128]: ("must be given once",)}, WRONG_PARAMETER)
        values[name] = value
    assert model is not None  # noqa: S101 - every GET has a model of its parameters
    try:
        return codec.validate(values, model)
    except ValidationError as error:
        errors = refusal_of(error.issues).errors or {}
        raise validation_error(errors, WRONG_PARAMETER) from None


def deprecation_headers(successor: str | None) -> dict[str, str]:
    """Return the headers of a deprecated operation that ``successor`` replaces."""
    if successor is None:
        return {}
    return {
        "Deprecation": f"@{DEPRECATED_SINCE_S}",
        "Link": f'<{successor}>; rel="successor-version"',
    }


def preferred_page_size(headers: Sequence[str]) -> int | None:
    """Return the page size that ``Prefer: maxpagesize=N`` requests, at most ``PAGE_MAX``.

    A header is used because the contract has no field for the page size, and services that follow
    the contract refuse unknown keys in a body. Services that do not know this preference ignore it
    (RFC 7240).
    """
    for header in ",".join(headers).split(","):
        if match := _MAX_PAGE_SIZE.fullmatch(header.partition(";")[0].strip()):
            return min(int(match[1]), PAGE_MAX)
    return None


def group_by_path(operations: Iterable[Procedure]) -> dict[str, list[Procedure]]:
    """Return operations grouped by their path."""
    paths: dict[str, list[Procedure]] = {}
    for operation in operations:
        paths.setdefault(operation.path, []).append(operation)
    return paths
