"""`heartbeat`: the most frequent call by far, so those of a moment share a transaction."""

import asyncio
from collections.abc import Sequence

from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agent.wire.codec import encode
from agent.wire.device_operations import HeartbeatReply, HeartbeatRequest
from controlplane.remote_control.heartbeats import Beat, Beaten, note_heartbeats
from controlplane.storage.notifications import publish
from controlplane.web.admission import admit
from controlplane.web.bodies import read_model
from controlplane.web.core import Core

BEATS_MAX = 256
"""Written together. Those that come meanwhile are the next transaction's."""


class HeartbeatEndpoint:
    """An ASGI endpoint; used from the event loop only."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._waiting: list[tuple[Beat, asyncio.Future[HeartbeatReply]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        caller = await admit(self._core, request, writes=True)
        with self._core.fairness.call(caller):
            beat = await read_model(self._core, request, caller, HeartbeatRequest)
            reply = await self._note(Beat(caller, beat))
        await Response(encode(reply), media_type="application/json")(scope, receive, send)

    async def _note(self, beat: Beat) -> HeartbeatReply:
        """Return once it is written down. Raises the refusal, or what broke the transaction."""
        noted: asyncio.Future[HeartbeatReply] = asyncio.get_running_loop().create_future()
        self._waiting.append((beat, noted))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write(), name="heartbeats")
        return await noted

    async def _write(self) -> None:
        try:
            while self._waiting:
                taken, self._waiting = self._waiting[:BEATS_MAX], self._waiting[BEATS_MAX:]
                answers: Sequence[HeartbeatReply | Exception]
                try:
                    answers = (await self._write_together([beat for beat, _ in taken])).answers
                except Exception as error:  # noqa: BLE001 - each of the callers is told
                    answers = [error] * len(taken)
                for (_, noted), answer in zip(taken, answers, strict=True):
                    _settle(noted, answer)
        finally:
            self._writing = None

    async def _write_together(self, beats: list[Beat]) -> Beaten:
        now, settings = self._core.clock(), self._core.settings

        def work(session: Session) -> Beaten:
            beaten = note_heartbeats(session, beats, now, settings)
            publish(session, beaten.woken, self._core.name)
            return beaten

        beaten = await self._core.write(work)
        self._core.feeds.notify(beaten.woken)
        for organization_id, heard in beaten.heard.items():
            is_reordered = organization_id in beaten.returned
            self._core.console_feeds.notify(organization_id, heard, is_reordered=is_reordered)
        return beaten


def _settle(noted: asyncio.Future[HeartbeatReply], answer: HeartbeatReply | BaseException) -> None:
    if noted.done():
        return  # the caller has gone
    if isinstance(answer, BaseException):
        noted.set_exception(answer)
    else:
        noted.set_result(answer)
