"""The open command streams, by API key: who is waiting, and what each was sent.

A change in the database is told by `notify`. One look then serves all streams of a key, and one
transaction all keys that changed meanwhile, so that a fleet that comes back at once costs few
looks, and a stream for which nothing is new sleeps.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from uuid import UUID

from agent.wire.device_operations import Command
from controlplane.devices.event_stream import EventStream
from controlplane.devices.requests.delivery import COMMANDS_MAX

log = logging.getLogger("controlplane.devices.requests.command_feeds")
KEYS_A_LOOK = 256
RETRY_S = 1.0

Look = Callable[[Sequence[UUID]], Awaitable[Mapping[UUID, Sequence[Command]]]]
"""Returns what waits for each key; a key that is not in the answer may no longer ask."""


class CommandStream(EventStream):
    """One open command stream. Brings each request once while it waits."""

    def __init__(self) -> None:
        super().__init__()
        self._sent: frozenset[UUID] = frozenset()
        self._fresh: list[Command] = []

    async def next(self, within_s: float) -> Sequence[Command]:
        """Wait for what is new and return it: nothing after ``within_s``, or when it ended."""
        await self.wait(within_s)
        fresh, self._fresh = self._fresh, []
        return fresh

    def offer(self, waiting: Sequence[Command]) -> None:
        """Take from all that waits for the key what was not sent here yet."""
        fresh = [command for command in waiting if command.request_id not in self._sent]
        # Only what is still waiting is remembered, so the set cannot grow for months.
        self._sent = frozenset(command.request_id for command in waiting)
        if fresh:
            self._fresh += fresh
            self.wake()


class CommandFeeds:
    """Used from the event loop only."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._streams: dict[UUID, set[CommandStream]] = {}
        self._stale: dict[UUID, None] = {}
        self._cut: set[UUID] = set()
        self._looking: asyncio.Task[None] | None = None
        self.is_closed = False
        self.count = 0

    @contextmanager
    def open(self, key_id: UUID) -> Iterator[CommandStream]:
        """Give a stream for this key, which begins with all that waits."""
        stream = CommandStream()
        if self.is_closed:
            stream.end()
        streams = self._streams.setdefault(key_id, set())
        streams.add(stream)
        self.count += 1
        self.notify((key_id,))
        try:
            yield stream
        finally:
            self.count -= 1
            streams.discard(stream)
            if not streams:
                del self._streams[key_id]

    @property
    def cut(self) -> tuple[UUID, ...]:
        """The keys for which more was waiting than is given at once."""
        return tuple(self._cut)

    def notify(self, key_ids: Iterable[UUID]) -> None:
        """Look for what is new for these keys. Called after the commit of what changed."""
        self._stale.update(dict.fromkeys(key for key in key_ids if key in self._streams))
        if self._stale and self._looking is None and not self.is_closed:
            self._looking = asyncio.create_task(self._look_until_fresh(), name="command feeds")

    def close(self) -> None:
        """End every stream."""
        self.is_closed = True
        self._stale.clear()
        for streams in self._streams.values():
            for stream in streams:
                stream.end()

    async def finished(self) -> None:
        """Wait until no look is under way. For who closes the database."""
        if self._looking is not None:
            await asyncio.wait((self._looking,))

    async def _look_until_fresh(self) -> None:
        try:
            while self._stale:
                await self._look_once()
        finally:
            self._looking = None

    async def _look_once(self) -> None:
        keys = tuple(self._stale)[:KEYS_A_LOOK]
        for key in keys:
            del self._stale[key]
        try:
            waiting = await self._look(keys)
        except Exception:
            # The boundary of a loop: a database that is away must not end what waits for it.
            log.exception("cannot look for commands, next try in %g s", RETRY_S)
            await asyncio.sleep(RETRY_S)
            self._stale.update(dict.fromkeys(key for key in keys if key in self._streams))
            return
        for key in keys:
            for stream in self._streams.get(key, ()):
                if key in waiting:
                    stream.offer(waiting[key])
                else:
                    stream.end()
        self._cut -= set(keys)
        self._cut |= {key for key, commands in waiting.items() if len(commands) >= COMMANDS_MAX}
