"""`onCommands`: pushed as server-sent events to who asks for them, else answered at once.

A stream begins with everything the devices of the API key have not begun, whether or not an
earlier stream carried it, and brings each request once. It looks again when the bell rings and
every few seconds, because another process on the same database may have made the request.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from agent.wire.base import Message
from agent.wire.codec import encode
from agent.wire.device_operations import Command, EmptyRequest
from controlplane.accounts.api_keys import Caller
from controlplane.accounts.key_store import is_live
from controlplane.core import Core
from controlplane.http.auth import admit, read_body
from controlplane.http.bodies import parse_body
from controlplane.http.errors import unavailable
from controlplane.remote_control.delivery import waiting_commands

RECONNECT_MS = 3000
OPENING = f"retry: {RECONNECT_MS}\n: connected\n\n".encode()
KEEP_ALIVE = b": keep-alive\n\n"


class CommandList(Message):
    """The body for who asks for JSON."""

    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class Look:
    is_live: bool
    commands: tuple[Command, ...]


class CommandsEndpoint:
    def __init__(self, core: Core) -> None:
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        caller = await admit(self._core, request, writes=True)
        parse_body(EmptyRequest, await read_body(self._core, request))
        response: Response
        if prefers_stream(request.headers.get("accept", "")):
            if self._core.notifications.listener_count >= self._core.settings.streams_max:
                raise unavailable("too many command streams are open", wait_s=30)
            response = StreamingResponse(
                command_stream(self._core, caller),
                media_type="text/event-stream",
                headers={"X-Accel-Buffering": "no"},  # nginx would hold events back
            )
        else:
            commands = (await look(self._core, caller)).commands
            content = encode(CommandList(commands=commands))
            response = Response(content, media_type="application/json")
        await response(scope, receive, send)


async def command_stream(core: Core, caller: Caller) -> AsyncIterator[bytes]:
    """Yield the bytes of the event stream until the service stops or the key is revoked."""
    sent: set[UUID] = set()
    idle_s = 0.0
    with core.notifications.listen(caller.key_id) as rung:
        yield OPENING
        while not core.notifications.is_closed:
            rung.clear()
            seen = await look(core, caller)
            if not seen.is_live:
                return
            fresh = [command for command in seen.commands if command.request_id not in sent]
            # Only what is still waiting is remembered, so the set cannot grow for months.
            sent = {command.request_id for command in seen.commands}
            for command in fresh:
                yield event_of(command)
            idle_s = 0.0 if fresh else idle_s + await _wait(core, rung)
            if idle_s >= core.settings.keep_alive_s:
                idle_s = 0.0
                yield KEEP_ALIVE


def event_of(command: Command) -> bytes:
    """One event of the HTML standard, section 9.2; JSON holds no raw line break."""
    data = encode(command).decode()
    return f"event: command\nid: {command.request_id}\ndata: {data}\n\n".encode()


async def look(core: Core, caller: Caller) -> Look:
    now = core.clock()

    def work(session: Session) -> Look:
        return Look(is_live(session, caller.key_id), waiting_commands(session, caller, now))

    return await core.read(work)


def prefers_stream(accept: str) -> bool:
    """Tell whether ``text/event-stream`` is asked for, no less than JSON (RFC 9110, 12.5.1)."""
    wishes: dict[str, float] = {}
    for part in accept.split(","):
        media_type, *parameters = (piece.strip().lower() for piece in part.split(";"))
        wishes[media_type] = _quality(parameters)
    stream = wishes.get("text/event-stream", 0.0)
    return stream > 0 and stream >= wishes.get("application/json", 0.0)


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


async def _wait(core: Core, rung: asyncio.Event) -> float:
    """Wait for the bell, or for the next look; return the seconds waited at most."""
    wait_s = min(core.settings.stream_look_s, core.settings.keep_alive_s)
    try:
        async with asyncio.timeout(wait_s):
            await rung.wait()
    except TimeoutError:
        return wait_s
    return 0.0
