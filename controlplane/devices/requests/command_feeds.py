"""The open command streams, by API key.

After a change in the database, `notify` is called with the affected API keys. One poll then reads
the waiting commands of up to `KEYS_PER_POLL` keys that have been passed to `notify`, and serves all
streams of these keys. Therefore a fleet that reconnects at once causes only a few polls. Streams
without new commands cause no polls.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from uuid import UUID

from agent.wire.device_operations import Command
from controlplane.devices.event_stream import EventStream
from controlplane.devices.requests.requests import COMMANDS_MAX

log = logging.getLogger("controlplane.devices.requests.command_feeds")
KEYS_PER_POLL = 256
RETRY_S = 1.0

Poll = Callable[[Sequence[UUID]], Awaitable[Mapping[UUID, Sequence[Command]]]]
"""Takes ids of API keys, and returns the waiting commands by key. If the result does not contain a
key, the key is no longer valid."""


class CommandStream(EventStream):
    """One open command stream. It sends each waiting request once."""

    def __init__(self) -> None:
        super().__init__()
        self._sent: frozenset[UUID] = frozenset()
        self._unsent: list[Command] = []

    async def next(self, within_s: float) -> Sequence[Command]:
        """Wait for new commands.

        Returns an empty sequence if there are none within ``within_s``, or if the stream ends.
        """
        await self.wait(within_s)
        new_commands, self._unsent = self._unsent, []
        return new_commands

    def offer(self, waiting: Sequence[Command]) -> None:
        """Queue the commands that this stream has not sent yet.

        ``waiting`` contains the waiting commands of the key, at most COMMANDS_MAX, oldest first.
        """
        unsent_commands = [command for command in waiting if command.request_id not in self._sent]
        # Ids of commands that no longer wait are dropped. Otherwise a stream that stays open for
        # months would collect more and more ids.
        self._sent = frozenset(command.request_id for command in waiting)
        if unsent_commands:
            self._unsent += unsent_commands
            self.wake()


class CommandFeeds:
    """The open command streams of this process. Use it from the event loop only.

    ``count`` is the number of open streams.
    """

    def __init__(self, poll: Poll) -> None:
        self._poll = poll
        self._streams: dict[UUID, set[CommandStream]] = {}
        # In the order in which the keys were passed to `notify`.
        self._keys_to_poll: dict[UUID, None] = {}
        self._keys_with_more: set[UUID] = set()
        self._poll_task: asyncio.Task[None] | None = None
        self.is_closed = False
        self.count = 0

    @contextmanager
    def open(self, key_id: UUID) -> Iterator[CommandStream]:
        """Open a stream for this key. It first sends the waiting commands, at most
        `COMMANDS_MAX`.
        """
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
    def keys_with_more_commands(self) -> tuple[UUID, ...]:
        """Return the keys that may have more waiting commands than the last poll returned."""
        return tuple(self._keys_with_more)

    def notify(self, key_ids: Iterable[UUID]) -> None:
        """Poll for new commands of these keys. Call this after the commit."""
        self._keys_to_poll.update(dict.fromkeys(key for key in key_ids if key in self._streams))
        if self._keys_to_poll and self._poll_task is None and not self.is_closed:
            self._poll_task = asyncio.create_task(self._poll_all_keys(), name="command feeds")

    def close(self) -> None:
        """End every stream."""
        self.is_closed = True
        self._keys_to_poll.clear()
        for streams in self._streams.values():
            for stream in streams:
                stream.end()

    async def wait_for_poll(self) -> None:
        """Wait until the running poll ends. Call this before the database is closed."""
        if self._poll_task is not None:
            await asyncio.wait((self._poll_task,))

    async def _poll_all_keys(self) -> None:
        try:
            while self._keys_to_poll:
                await self._poll_once()
        finally:
            self._poll_task = None

    async def _poll_once(self) -> None:
        keys = tuple(self._keys_to_poll)[:KEYS_PER_POLL]
        for key in keys:
            del self._keys_to_poll[key]
        try:
            waiting = await self._poll(keys)
        except Exception:
            # Every error is caught, because the loop must survive an unavailable database.
            log.exception("cannot poll for commands, next attempt in %g s", RETRY_S)
            await asyncio.sleep(RETRY_S)
            self._keys_to_poll.update(dict.fromkeys(key for key in keys if key in self._streams))
            return
        for key in keys:
            for stream in self._streams.get(key, ()):
                if key in waiting:
                    stream.offer(waiting[key])
                else:
                    stream.end()
        self._keys_with_more -= set(keys)
        self._keys_with_more |= {
            key for key, commands in waiting.items() if len(commands) >= COMMANDS_MAX
        }
