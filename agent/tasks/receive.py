"""Receives the service's commands by stream or by polling, and writes them into the journal.

If the service refuses the stream, the agent polls for some time before it tries the stream again.
After STREAM_REFUSALS_MAX or more refusals in a row, it polls for at least about
STREAM_RETRY_AFTER_S. The rate of incoming data is limited (`adapters.read_rate_limit`). The agent
closes a reply with too many unreadable entries.
"""

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final, Literal
from uuid import UUID

from agent.adapters.clock import Clock, wait_at_most
from agent.adapters.service_client import CommandStream
from agent.adapters.storage.journal import Entry, Journal
from agent.config.model import Commands
from agent.errors import FinalError, Refused, ServiceError, ServiceUnavailable, TemporaryError
from agent.rules.command_frames import Frame
from agent.rules.lifecycle import Event, State, acknowledgement_to_repeat
from agent.rules.retry import Backoff
from agent.tasks.acknowledge import Acknowledger
from agent.tasks.health_board import HealthBoard
from agent.tasks.session.device_session import DeviceSession
from agent.wire.device_operations import Command

log = logging.getLogger(__name__)

Method = Literal["stream", "poll"]

SHORT_STREAM_S: Final = 10.0
"""Each consecutive stream that lasts less than this increases the wait before the next stream."""

STREAM_RENEWED_AFTER_S: Final = 1800.0
"""Age after which a stream is replaced, because a proxy can keep a connection open that the service
has lost. Up to a fifth is added at random, so that devices do not all reconnect together."""

STREAM_REFUSALS_MAX: Final = 2
"""Number of refused streams in a row after which the agent polls for STREAM_RETRY_AFTER_S."""
STREAM_RETRY_AFTER_S: Final = 600.0
"""Time of polling after which the agent tries the stream again."""
UNREADABLE_MAX: Final = 50
"""A reply with more unreadable entries than this is closed."""

RECONNECT: Final = Backoff(base_s=0.5, cap_s=15.0)
"""Waits before the next stream. They grow with the number of short streams in a row."""
REJECTED: Final = Backoff(base_s=8.0, cap_s=120.0)
"""Minimum wait after a refused call of `onCommands`, and after a reply that the agent closed
because of unreadable entries."""
BREAKS_REPORTED_FROM: Final = 3
"""Minimum number of consecutive broken replies that is reported as a problem."""
UNFINISHED_MAX: Final = 1000
"""Maximum number of unfinished requests in the journal. The service keeps further requests."""
ACKNOWLEDGED_AGAIN_AFTER_S: Final = 60.0
"""Minimum time between two repeated acknowledgements of one request."""


@dataclass(slots=True, eq=False)
class Receiver:
    """Receives commands, by stream or by polling."""

    config: Commands
    session: DeviceSession
    acknowledger: Acknowledger
    journal: Journal
    health: HealthBoard
    clock: Clock
    rng: Random
    _acknowledged_again_at: OrderedDict[UUID, float] = field(default_factory=OrderedDict)
    _stream_refusals: int = 0
    _stream_not_before: float = 0.0
    """Until this time of the monotonic clock, the agent polls instead of opening a stream."""
    _short_streams: int = 0
    _has_ended_early: bool = False
    """Whether the last reply ended before its renewal, and while the device was still bound."""
    _rejections: int = 0
    """Number of refused calls, and of replies closed because of unreadable entries, in a row. It
    does not include refused streams that the agent replaces by polling."""
    _breaks: int = 0
    """Number of broken replies in a row."""
    _renew: asyncio.Event = field(default_factory=asyncio.Event)
    delivery: Method | None = None
    """How the last call of `onCommands` received commands. None if the call failed or the
    binding was lost."""
    received: int = 0
    unreadable: int = 0
    for_others: int = 0
    """Number of commands for other bindings. They are normal if devices share an API key."""
    on_break: Callable[[], None] = lambda: None
    """Called when the connection of a reply breaks."""
    expired: int = 0
    """Number of requests that had expired before they arrived."""

    @property
    def ignored(self) -> int:
        """Number of entries that were unreadable or for other bindings."""
        return self.unreadable + self.for_others

    async def run(self) -> None:
        """Receive commands, forever."""
        while True:
            await self.session.binding_state.wait_until_bound()
            start_s = self.clock.monotonic()
            method = self._choose_method()
            is_stream = False
            try:
                is_stream = await self._receive_once(method)
            except FinalError as error:
                self.delivery = None
                self._note_rejection(error, method)
            except TemporaryError as error:
                self.delivery = None
                if not self.session.breaker.is_up:
                    continue  # no contact: the circuit breaker delays the next call
                if method == "stream":
                    self._note_stream_refused(error)
            if method == "stream" and self._choose_method() == "poll":
                continue  # the stream was just refused: poll at once
            await self._pause(is_stream, self.clock.monotonic() - start_s)

    def reconnect(self) -> None:
        """Replace the current stream. Its connection might be lost without an error."""
        self._renew.set()

    def _choose_method(self) -> Method:
        if self.config.delivery != "auto":
            return self.config.delivery
        return "stream" if self.clock.monotonic() >= self._stream_not_before else "poll"

    async def _receive_once(self, method: Method) -> bool:
        """Read one reply of `onCommands` to its end. Returns whether the reply was a stream."""
        async with contextlib.AsyncExitStack() as connection:
            loss = asyncio.create_task(self.session.binding_state.wait_for_loss())
            connection.callback(loss.cancel)
            answer = await self.session.open_commands(connection, stream=method == "stream")
            self.delivery = "stream" if answer.is_stream else "poll"
            unreadable_before = self.unreadable
            await self._process_reply(answer, loss)
            if loss.done():
                self.delivery = None
            self._note_end(method, self.unreadable - unreadable_before)
            return answer.is_stream

    def _note_end(self, method: Method, unreadable: int) -> None:
        """Update counts and conditions after a reply with ``unreadable`` unreadable entries."""
        if unreadable > UNREADABLE_MAX:
            self._rejections += 1
            if method == "stream":
                self._note_stream_refused(f"{unreadable} unreadable entries")
            return
        if method == "stream":
            self._stream_refusals = 0
        self._rejections = 0
        self.health.clear({"commands-rejected"})
        if not unreadable:
            self.health.clear({"commands-unreadable"})

    async def _process_reply(self, answer: CommandStream, loss: asyncio.Task[None]) -> None:
        """Process frames until the reply ends, the binding is lost, or the stream is too old."""
        self._renew.clear()
        reading = asyncio.create_task(self._process_frames(answer))
        renewed_after_s = STREAM_RENEWED_AFTER_S * self.rng.uniform(1.0, 1.2)
        renew = asyncio.create_task(wait_at_most(self._renew, renewed_after_s, self.clock))
        try:
            await asyncio.wait((reading, loss, renew), return_when=asyncio.FIRST_COMPLETED)
            self._has_ended_early = reading.done()
            if reading.done():
                reading.result()
        finally:
            reading.cancel()
            renew.cancel()
            await asyncio.wait((reading, renew))

    async def _process_frames(self, answer: CommandStream) -> None:
        maximum = self.unreadable + UNREADABLE_MAX
        try:
            async for frame in answer.frames:
                self.process(frame)
                if self.unreadable > maximum:
                    log.info("a reply of onCommands is closed: too many entries are unreadable")
                    break
                await asyncio.sleep(0)  # other tasks must run during a flood of frames
        except ServiceUnavailable as error:
            # Not a failure for the circuit breaker: the service did reply. The next call shows
            # whether it is still reachable.
            self._note_break(error)
        else:
            self._breaks = 0
            self.health.clear({"stream-broken"})
        finally:
            if isinstance(answer.frames, AsyncGenerator):
                await answer.frames.aclose()

    def _note_rejection(self, error: FinalError, method: Method) -> None:
        if isinstance(error, Refused):
            self.session.request_recheck()
        if method == "stream" and self.config.delivery == "auto":
            self._note_stream_refused(error)
            return
        self._rejections += 1
        self.health.set("commands-rejected", str(error))

    def _note_stream_refused(self, why: ServiceError | str) -> None:
        """Set the time until which the agent polls instead of opening a stream."""
        if self.config.delivery != "auto":
            return
        self._stream_refusals += 1
        wait_s = max(self.config.poll_interval_seconds, self.session.give_up_stream())
        if self._stream_refusals >= STREAM_REFUSALS_MAX:
            wait_s = max(wait_s, STREAM_RETRY_AFTER_S * self.rng.uniform(0.9, 1.1))
        log.info("no command stream (%s): next try in %.0f s", why, wait_s)
        self._stream_not_before = self.clock.monotonic() + wait_s

    def _note_break(self, error: ServiceUnavailable) -> None:
        log.info("the reply of onCommands broke: %s", error)
        self.on_break()
        self._breaks += 1
        if self._breaks >= BREAKS_REPORTED_FROM:
            self.health.set("stream-broken", str(error))

    async def _pause(self, is_stream: bool, lasted_s: float) -> None:
        if is_stream:
            self._short_streams = 0 if lasted_s > SHORT_STREAM_S else self._short_streams + 1
            pause_s = RECONNECT.delay_s(max(1, self._short_streams), self.rng)
            if self._has_ended_early:  # perhaps the streams of all devices ended together
                pause_s = max(
                    pause_s, self.rng.uniform(0.0, self.session.breaker.reconnect_spread_s)
                )
        else:
            self._short_streams = 0
            pause_s = self.config.poll_interval_seconds * self.rng.uniform(0.9, 1.1)
        if self._rejections:
            pause_s = max(pause_s, REJECTED.delay_s(self._rejections, self.rng))
        await self.clock.sleep(pause_s)

    def process(self, frame: Frame) -> None:
        """Process each command of a frame, and count the unreadable entries."""
        if frame.reconnect_s is not None:
            self.session.breaker.set_reconnect_time(frame.reconnect_s)
        for reason in frame.rejected:
            self.unreadable += 1
            log.info("ignored an unreadable entry: %s", reason)
            if not self.health.is_set("commands-unreadable"):
                self.health.set("commands-unreadable", f"the first entry: {reason}")
        for command in frame.commands:
            self._process_command(command)

    def _process_command(self, command: Command) -> None:
        if command.binding_id != self.session.binding_state.binding_id:
            self.for_others += 1
            log.debug("request %s is for binding %s", command.request_id, command.binding_id)
            return
        known_entry = self.journal.get(command.request_id)
        if known_entry is not None:
            self._process_known_request(known_entry, command)
        elif self.session.is_past(command.expires_at):
            self.expired += 1
            log.debug("request %s had expired before it arrived", command.request_id)
            return
        elif self._has_room() and self.journal.add(command, self.clock.now()):
            self.received += 1
            log.info("request %s for a %s report", command.request_id, command.kind)
        self.acknowledger.wake()

    def _process_known_request(self, entry: Entry, command: Command) -> None:
        """Repeat the acknowledgement of a known request, if the service has lost it.

        The request never runs again.
        """
        log.info("request %s was delivered again", entry.request_id)
        status = acknowledgement_to_repeat(entry.state, command.status)
        if status is None or not self._may_acknowledge_again(entry.request_id):
            return
        if entry.state is State.ACKNOWLEDGED:
            self.journal.move(entry, Event.REDELIVERED, self.clock.now())
        else:
            self.acknowledger.acknowledge_again(entry, status)

    def _may_acknowledge_again(self, request_id: UUID) -> bool:
        """Return whether a repeated acknowledgement of this request is due, and note its time."""
        now = self.clock.monotonic()
        last_at = self._acknowledged_again_at.get(request_id)
        if last_at is not None and now - last_at < ACKNOWLEDGED_AGAIN_AFTER_S:
            return False
        self._acknowledged_again_at[request_id] = now
        self._acknowledged_again_at.move_to_end(request_id)
        if len(self._acknowledged_again_at) > UNFINISHED_MAX:
            self._acknowledged_again_at.popitem(last=False)
        return True

    def _has_room(self) -> bool:
        """Return whether the journal has room for a new request.

        A request without room is not acknowledged, so the service delivers it again.
        """
        if self.journal.count_unfinished() < UNFINISHED_MAX:
            self.health.clear({"requests-flooding"})
            return True
        self.health.set("requests-flooding", f"{UNFINISHED_MAX} requests wait")
        return False
