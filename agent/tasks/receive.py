"""Takes commands from the service into the journal: by stream, or by asking again and again."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from random import Random
from typing import Final, Literal

from agent.adapters.clock import Clock
from agent.adapters.facade import CommandStream, Facade
from agent.adapters.journal import Journal
from agent.errors import BodyRejected, BodyTooLarge, Refused, Unavailable
from agent.rules.command_frames import Frame
from agent.rules.lifecycle import Event, State
from agent.rules.retry import Backoff
from agent.tasks.enroll import Enrollment
from agent.tasks.health_board import HealthBoard
from agent.tasks.link import Link
from agent.tasks.standing import Standing
from agent.wire.device_operations import Command

log = logging.getLogger(__name__)

Delivery = Literal["auto", "stream", "poll"]

STREAM_WORTH_S: Final = 10.0
"""A stream that ends sooner is asked for again only after a growing wait."""

RECONNECT: Final = Backoff(base_s=0.5, cap_s=15.0)


class Receiver:
    """``wake`` is called when a command is new or came again."""

    def __init__(
        self,
        *,
        delivery: Delivery,
        poll_interval_s: float,
        facade: Facade,
        link: Link,
        standing: Standing,
        enrollment: Enrollment,
        journal: Journal,
        health: HealthBoard,
        clock: Clock,
        rng: Random,
        wake: Callable[[], None],
    ) -> None:
        self._delivery = delivery
        self._poll_interval_s = poll_interval_s
        self._facade = facade
        self._link = link
        self._standing = standing
        self._enrollment = enrollment
        self._journal = journal
        self._health = health
        self._clock = clock
        self._rng = rng
        self._wake = wake
        self._short_streams = 0
        self.now_by: Literal["stream", "poll"] | None = None
        self.received = 0
        self.ignored = 0

    async def run(self) -> None:
        """Receive for ever."""
        while True:
            await self._standing.wait_to_work()
            began = self._clock.monotonic()
            try:
                is_lasting = await self._listen()
            except Refused as error:
                log.warning("commands are refused: %s", error)
                self._enrollment.doubt()
                is_lasting = False
            except (BodyRejected, BodyTooLarge) as error:
                self._health.report("bad-reply", f"onCommands is rejected: {error}")
                is_lasting = False
            await self._pause(is_lasting, self._clock.monotonic() - began)

    async def _listen(self) -> bool:
        """Take one answer of `onCommands` to its end; tell whether it was a stream."""
        async with contextlib.AsyncExitStack() as connection:
            loss = asyncio.create_task(self._standing.wait_for_loss())
            connection.callback(loss.cancel)
            answer = await self._link.call(lambda: self._open(connection))
            self.now_by = "stream" if answer.is_lasting else "poll"
            await self._take_all(answer, loss)
            return answer.is_lasting

    async def _take_all(self, answer: CommandStream, loss: asyncio.Task[None]) -> None:
        """Take frames until they end; a stream of a binding that is lost is left."""
        taking = asyncio.create_task(self._take_frames(answer))
        try:
            await asyncio.wait((taking, loss), return_when=asyncio.FIRST_COMPLETED)
            if taking.done():
                taking.result()
        finally:
            taking.cancel()
            await asyncio.wait((taking,))

    async def _take_frames(self, answer: CommandStream) -> None:
        try:
            async for frame in answer.frames:
                self.take(frame)
        except Unavailable as error:
            # The gate did open: the next call shows whether the service is still there.
            log.info("the command stream broke: %s", error)

    async def _open(self, connection: contextlib.AsyncExitStack) -> CommandStream:
        wants_stream = self._delivery != "poll"
        return await connection.enter_async_context(self._facade.commands(stream=wants_stream))

    async def _pause(self, is_lasting: bool, lasted_s: float) -> None:
        if not is_lasting:
            self._short_streams = 0
            await self._clock.sleep(self._poll_interval_s * self._rng.uniform(0.9, 1.1))
            return
        self._short_streams = 0 if lasted_s > STREAM_WORTH_S else self._short_streams + 1
        await self._clock.sleep(RECONNECT.delay_s(max(1, self._short_streams), self._rng))

    def take(self, frame: Frame) -> None:
        """Write each command down; the service is told by another task."""
        for reason in frame.rejected:
            self._ignore(f"an entry cannot be read: {reason}")
        for command in frame.commands:
            self._take_command(command)

    def _take_command(self, command: Command) -> None:
        if command.binding_id != self._standing.binding_id:
            self._ignore(f"request {command.request_id} is for binding {command.binding_id}")
            return
        if self._journal.add(command, self._clock.now()):
            self.received += 1
            log.info("request %s: %s report wanted", command.request_id, command.kind)
        else:
            log.info("request %s came again", command.request_id)
            self._acknowledge_again(command)
        self._wake()

    def _acknowledge_again(self, command: Command) -> None:
        """A request that the service still calls queued has lost its acknowledgement."""
        entry = self._journal.get(command.request_id)
        if entry is None or command.status != "queued":
            return
        if entry.state is State.ACKNOWLEDGED:
            self._journal.move(entry, Event.CAME_AGAIN, self._clock.now())

    def _ignore(self, why: str) -> None:
        self.ignored += 1
        log.info("ignored: %s", why)
        self._health.report("commands-ignored", f"{self.ignored} so far; the last one: {why}")
