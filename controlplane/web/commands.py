"""`onCommands`: server-sent events for callers that prefer them, otherwise an immediate reply.

A stream begins with all requests that the devices of the API key have not started, even if an
earlier stream sent them. A stream sends each request once.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agent.wire.codec import encode
from agent.wire.device_operations import Command, CommandList, EmptyRequest
from controlplane.devices.event_stream import EventStream
from controlplane.devices.requests.command_feeds import CommandStream
from controlplane.devices.requests.requests import waiting_commands
from controlplane.web.admission import admit, read_model
from controlplane.web.core import Core

RECONNECT_MIN_MS = 3000
RECONNECT_MAX_MS = 60_000
RECONNECTS_A_SECOND = 200
"""Reconnections per second after an outage. A reconnection costs about as much as a heartbeat,
and the service can process about this many heartbeats per second."""
OPENING = b"retry: %d\n: connected\n\n"
KEEP_ALIVE = b"retry: %d\n: keep-alive\n\n"
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),  # otherwise nginx would buffer events
]


class CommandsEndpoint:
    def __init__(self, core: Core) -> None:
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        caller = await admit(self._core, request, writes=True)
        with self._core.fairness.call(caller):
            await read_model(self._core, request, caller, EmptyRequest)
        if prefers_stream(request.headers.get("accept", "")):
            with (
                self._core.fairness.stream(caller),
                self._core.streams.open(caller),
                self._core.metrics.stream("commands"),
                self._core.feeds.open(caller.key_id) as stream,
            ):
                await send_events(stream, command_stream(self._core, stream), receive, send)
            return
        now = self._core.clock()
        commands = await self._core.read_for(
            caller, lambda session: waiting_commands(session, caller.key_id, now)
        )
        for command in commands:
            self._core.metrics.count_command(command.kind, "reply")
        response = Response(encode(CommandList(commands=commands)), media_type="application/json")
        await response(scope, receive, send)


async def command_stream(core: Core, stream: CommandStream) -> AsyncGenerator[bytes]:
    """Yield the bytes of the events until ``stream`` ends."""
    yield OPENING % reconnect_ms(core.feeds.count)
    while not stream.is_ended:
        new_commands = await stream.next(core.settings.keep_alive_s)
        for command in new_commands:
            core.metrics.count_command(command.kind, "stream")
            yield event_of(command)
        if not new_commands and not stream.is_ended:
            yield KEEP_ALIVE % reconnect_ms(core.feeds.count)


def reconnect_ms(streams: int) -> int:
    """Return the time in milliseconds over which streams that end together should reconnect.

    The time is sent as ``retry`` at the start of a stream and with each keep-alive comment.
    ``streams`` is the number of open streams.
    """
    return min(max(RECONNECT_MIN_MS, streams * 1000 // RECONNECTS_A_SECOND), RECONNECT_MAX_MS)


async def send_events(
    stream: EventStream, events: AsyncGenerator[bytes], receive: Receive, send: Send
) -> None:
    """Send ``events`` until they end. End ``stream`` when the client disconnects.

    Starlette's streaming response is not used: it needs a task group for each stream, and there are
    thousands of streams that are idle most of the time.
    """
    watch = asyncio.create_task(_end_at_disconnect(receive, stream), name="client of a stream")
    try:
        await send({"type": "http.response.start", "status": 200, "headers": list(HEADERS)})
        async with aclosing(events) as pieces:
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    finally:
        watch.cancel()


async def _end_at_disconnect(receive: Receive, stream: EventStream) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    stream.end()


def event_of(command: Command) -> bytes:
    """Return an event (HTML standard, section 9.2). Its data is one line of JSON."""
    data = encode(command).decode()
    return f"event: command\nid: {command.request_id}\ndata: {data}\n\n".encode()


def prefers_stream(accept: str) -> bool:
    """Return whether ``text/event-stream`` is accepted, and JSON is not preferred to it.

    Source: RFC 9110, section 12.5.1.
    """
    qualities: dict[str, float] = {}
    for part in accept.split(","):
        media_type, *parameters = (piece.strip().lower() for piece in part.split(";"))
        qualities[media_type] = _quality(parameters)
    stream = qualities.get("text/event-stream", 0.0)
    return stream > 0 and stream >= qualities.get("application/json", 0.0)


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
