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

LONG_POLL_S: Final = 90.0
"""A service may hold `onCommands` this long before it begins to answer."""

STREAM_WORTH_S: Final = 10.0
"""A stream that ends sooner is asked for again only after a growing wait."""

STREAM_RENEWED_AFTER_S: Final = 1800.0
"""However lively a stream looks, a proxy may have kept it alive for nobody."""

RECONNECT: Final = Backoff(base_s=0.5, cap_s=15.0)
REJECTED: Final = Backoff(base_s=8.0, cap_s=120.0)
"""Between two questions that are refused, where the period of polling is shorter."""
BREAKS_WORTH_SAYING: Final = 3
WAITING_MAX: Final = 1000
"""Requests that wait to be run; more are left with the service until there is room."""


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
        self._rejections = 0
        self._breaks = 0
        self._renew = asyncio.Event()
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
            except (Refused, BodyRejected, BodyTooLarge) as error:
                self._note_rejection(error)
                is_lasting = False
            await self._pause(is_lasting, self._clock.monotonic() - began)

    def reconnect(self) -> None:
        """Leave the present stream for a new one: it may be dead without a sign."""
        self._renew.set()

    async def _listen(self) -> bool:
        """Take one answer of `onCommands` to its end; tell whether it was a stream."""
        async with contextlib.AsyncExitStack() as connection:
            loss = asyncio.create_task(self._standing.wait_for_loss())
            connection.callback(loss.cancel)
            answer = await self._link.call(lambda: self._open(connection))
            self.now_by = "stream" if answer.is_lasting else "poll"
            self._rejections = 0
            self._health.clear({"commands-rejected"})
            await self._take_all(answer, loss)
            return answer.is_lasting

    async def _take_all(self, answer: CommandStream, loss: asyncio.Task[None]) -> None:
        """Take frames until they end; a stream of a binding that is lost, or old, is left."""
        self._renew.clear()
        taking = asyncio.create_task(self._take_frames(answer))
        old = asyncio.create_task(self._clock.sleep(STREAM_RENEWED_AFTER_S))
        renew = asyncio.create_task(self._renew.wait())
        try:
            await asyncio.wait((taking, loss, old, renew), return_when=asyncio.FIRST_COMPLETED)
            if taking.done():
                taking.result()
        finally:
            for task in (taking, old, renew):
                task.cancel()
            await asyncio.wait((taking, old, renew))

    async def _take_frames(self, answer: CommandStream) -> None:
        try:
            async for frame in answer.frames:
                self.take(frame)
                await asyncio.sleep(0)  # a flood of frames must not starve the other tasks
        except Unavailable as error:
            # The gate did open: the next call shows whether the service is still there.
            self._note_break(error)
        else:
            self._breaks = 0
            self._health.clear({"stream-broken"})

    def _note_rejection(self, error: Refused | BodyRejected | BodyTooLarge) -> None:
        self._rejections += 1
        self._health.report("commands-rejected", str(error))
        if isinstance(error, Refused):
            self._enrollment.doubt()

    def _note_break(self, error: Unavailable) -> None:
        log.info("the answer to onCommands broke: %s", error)
        self._breaks += 1
        if self._breaks >= BREAKS_WORTH_SAYING:
            self._health.report("stream-broken", str(error))

    async def _open(self, connection: contextlib.AsyncExitStack) -> CommandStream:
        wants_stream = self._delivery != "poll"
        # While the service answers others, a silent one may be holding a long poll; after an
        # outage silence is the outage, and everybody waits behind this call.
        patience_s = LONG_POLL_S if self._link.is_up else None
        answer = self._facade.commands(stream=wants_stream, patience_s=patience_s)
        return await connection.enter_async_context(answer)

    async def _pause(self, is_lasting: bool, lasted_s: float) -> None:
        if not is_lasting:
            self._short_streams = 0
            pause_s = self._poll_interval_s * self._rng.uniform(0.9, 1.1)
            if self._rejections:
                pause_s = max(pause_s, REJECTED.delay_s(self._rejections, self._rng))
            await self._clock.sleep(pause_s)
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
        if self._is_full(command):
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

    def _is_full(self, command: Command) -> bool:
        """Tell whether there is no room for a new request. It stays unacknowledged."""
        if self._journal.waiting() < WAITING_MAX:
            self._health.clear({"requests-flooding"})
            return False
        self._health.report("requests-flooding", f"{WAITING_MAX} requests wait")
        return self._journal.get(command.request_id) is None

    def _ignore(self, why: str) -> None:
        self.ignored += 1
        log.info("ignored: %s", why)
        self._health.report("commands-ignored", f"{self.ignored} so far; the last one: {why}")
