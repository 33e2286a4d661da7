"""Reading the body of a request."""

import asyncio
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

from starlette.requests import Request

from controlplane.operation.bodies import parse_body
from controlplane.operation.body_reader import LARGE_BYTES
from controlplane.operation.caller import Caller
from controlplane.operation.errors import Refusal, body_too_large
from controlplane.web.core import Core

Parsed = TypeVar("Parsed")


async def read_body(core: Core, request: Request, limit_bytes: int | None = None) -> bytes:
    """Return the body of a request.

    Args:
        limit_bytes: default: the limit for callers with a credential.

    Raises:
        Refusal: the body is too large or arrives too slowly.
    """
    limit = limit_bytes or core.settings.body_limit_bytes
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > limit:
        raise body_too_large(limit)
    body = bytearray()
    try:
        async with asyncio.timeout(core.settings.body_timeout_s):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise body_too_large(limit)
    except TimeoutError:
        raise Refusal(
            HTTPStatus.REQUEST_TIMEOUT,
            "body_timeout",
            f"the body did not arrive within {core.settings.body_timeout_s:g} s",
            headers={"Connection": "close"},
        ) from None
    return bytes(body)


async def read_model(core: Core, request: Request, caller: Caller, model: type[Parsed]) -> Parsed:
    """Return the JSON body of a request as ``model``. Raises the refusal of a wrong one."""
    body = await read_body(core, request)
    parsed: Parsed = await parse(core, caller, partial(parse_body, model), body)
    return parsed


async def parse(core: Core, caller: Caller, parser: Callable[[bytes], Any], body: bytes) -> Any:
    """Return what ``parser`` makes of a body.

    A large body is parsed by a process of its own, and its caller is charged for the time.
    """
    if len(body) <= LARGE_BYTES:
        return parser(body)
    parsed, took_s = await core.body_reader.read(parser, body)
    core.fairness.charge(caller, took_s)
    if isinstance(parsed, Refusal):
        raise parsed
    return parsed
