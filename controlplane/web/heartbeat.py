"""The endpoint of `heartbeat`, the most frequent call. Concurrent calls share a transaction."""

import asyncio
from collections.abc import Sequence

from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agent.wire.codec import encode
from agent.wire.device_operations import HeartbeatReply, HeartbeatRequest
from controlplane.remote_control.heartbeats import (
    DeviceHeartbeat,
    HeartbeatBatchResult,
    store_heartbeats,
)
from controlplane.storage.notifications import publish
from controlplane.web.admission import admit, read_model
from controlplane.web.core import Core

BATCH_MAX = 256
"""Maximum number of heartbeats in one transaction. Further heartbeats, and heartbeats that arrive
during the transaction, are stored in the next one."""


class HeartbeatEndpoint:
    """The ASGI endpoint of heartbeats. Use it from the event loop only."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._waiting: list[tuple[DeviceHeartbeat, asyncio.Future[HeartbeatReply]]] = []
        self._write_task: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        caller = await admit(self._core, request, writes=True)
        with self._core.fairness.call(caller):
            heartbeat = await read_model(self._core, request, caller, HeartbeatRequest)
            reply = await self._store(DeviceHeartbeat(caller, heartbeat))
        await Response(encode(reply), media_type="application/json")(scope, receive, send)

    async def _store(self, heartbeat: DeviceHeartbeat) -> HeartbeatReply:
        """Return the reply once the heartbeat is stored.

        Raises the refusal of this heartbeat, or the error of the transaction.
        """
        reply: asyncio.Future[HeartbeatReply] = asyncio.get_running_loop().create_future()
        self._waiting.append((heartbeat, reply))
        if self._write_task is None:
            self._write_task = asyncio.create_task(self._write(), name="heartbeats")
        return await reply

    async def _write(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:BATCH_MAX], self._waiting[BATCH_MAX:]
                replies: Sequence[HeartbeatReply | Exception]
                try:
                    replies = await self._write_together([heartbeat for heartbeat, _ in batch])
                except Exception as error:  # noqa: BLE001 - each caller gets the error
                    replies = [error] * len(batch)
                for (_, reply), answer in zip(batch, replies, strict=True):
                    _settle(reply, answer)
        finally:
            self._write_task = None

    async def _write_together(
        self, heartbeats: list[DeviceHeartbeat]
    ) -> Sequence[HeartbeatReply | Exception]:
        now, settings = self._core.clock(), self._core.settings

        def work(session: Session) -> HeartbeatBatchResult:
            result = store_heartbeats(session, heartbeats, now, settings)
            publish(session, result.keys_to_notify, self._core.name)
            return result

        result = await self._core.write(work, [heartbeat.caller for heartbeat in heartbeats])
        self._core.feeds.notify(result.keys_to_notify)
        for organization_id, positions in result.seen.items():
            is_reordered = organization_id in result.back_online
            self._core.console_feeds.notify(organization_id, positions, is_reordered=is_reordered)
        return result.replies


def _settle(reply: asyncio.Future[HeartbeatReply], answer: HeartbeatReply | BaseException) -> None:
    if reply.done():
        return  # the caller has disconnected
    if isinstance(answer, BaseException):
        reply.set_exception(answer)
    else:
        reply.set_result(answer)
