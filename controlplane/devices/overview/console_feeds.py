"""The open streams of consoles: who shows which devices, and one look that serves them all.

However many consoles a process has, it looks once for what they show: a moment after something
changed here, and every few seconds for what another process on the database did, or time alone.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from controlplane.devices.event_stream import EventStream

log = logging.getLogger("controlplane.devices.overview.console_feeds")
SETTLE_S: Final = 0.2
"""What happens together is told together: a request is taken, begun and answered in a moment."""
LOOK_S: Final = 5.0
"""After it all that is shown is looked at."""


@dataclass(frozen=True, slots=True)
class ToldRow:
    """A device's row as JSON, and who may see it."""

    organization_id: str
    location_id: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Viewer:
    """What an API key may see now: ``locations`` empty means all of its organization."""

    organization_id: str
    locations: frozenset[str]

    def sees(self, row: ToldRow) -> bool:
        is_near = not self.locations or row.location_id in self.locations
        return is_near and row.organization_id == self.organization_id


@dataclass(frozen=True, slots=True)
class Seen:
    """``rows`` by position; a key that is not among the ``seers`` may no longer look."""

    rows: Mapping[int, ToldRow]
    seers: Mapping[UUID, Viewer]


Look = Callable[[Collection[int], Collection[int], Collection[UUID]], Awaitable[Seen]]
"""Returns the rows of some devices, and of those of others that are not what they were, and what
some keys may see."""


class ConsoleStream(EventStream):
    """One open stream. ``shown`` are the positions of the devices that its console shows."""

    def __init__(self, key_id: UUID, shown: Collection[int]) -> None:
        super().__init__()
        self.key_id = key_id
        self.shown = frozenset(shown)
        self.changed: set[int] = set(shown)
        self.is_reordered = False
        self._told: dict[int, bytes] = {}
        self._fresh: dict[int, bytes] = {}
        self._is_to_reload = False

    async def next(self, within_s: float) -> tuple[tuple[bytes, ...], bool]:
        """Wait for rows that are not what they were. Return them, and whether the order of devices
        is another; neither after ``within_s``, or when it ended."""
        await self.wait(within_s)
        fresh, self._fresh = tuple(self._fresh.values()), {}
        is_to_reload, self._is_to_reload = self._is_to_reload, False
        return fresh, is_to_reload

    def offer(self, positions: Collection[int], *, is_reordered: bool) -> bool:
        """Note what to look at. Returns whether that is anything."""
        # The smaller set is gone through: a console shows few, a sweep may tell of thousands.
        self.changed |= self.shown.intersection(positions)
        self.is_reordered |= is_reordered
        return bool(self.changed) or self.is_reordered

    def tell(self, rows: Mapping[int, ToldRow], seer: Viewer, *, is_reordered: bool) -> None:
        """Take from what was seen what is shown here, and was not told so."""
        for position in self.shown & rows.keys():
            row = rows[position]
            if seer.sees(row) and self._told.get(position) != row.data:
                self._told[position] = self._fresh[position] = row.data
        self._is_to_reload |= is_reordered
        if self._fresh or self._is_to_reload:
            self.wake()


class ConsoleFeeds:
    """Used from the event loop only."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._streams: dict[str, set[ConsoleStream]] = {}
        self._news = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self._is_closed = False

    @contextlib.contextmanager
    def open(
        self, organization_id: str, key_id: UUID, shown: Collection[int]
    ) -> Iterator[ConsoleStream]:
        """Give a stream, which begins with all that is shown."""
        stream = ConsoleStream(key_id, shown)
        streams = self._streams.setdefault(organization_id, set())
        streams.add(stream)
        if self._is_closed:
            stream.end()
        else:
            self._begin()
        try:
            yield stream
        finally:
            streams.discard(stream)
            if not streams:
                self._streams.pop(organization_id, None)
            if not self._streams:
                self._news.set()  # nobody is left to look for

    def notify(
        self, organization_id: str, positions: Collection[int], *, is_reordered: bool
    ) -> None:
        """Tell of what changed. Called after its commit."""
        streams = self._streams.get(organization_id, ())
        has_news = False
        for stream in streams:
            has_news |= stream.offer(positions, is_reordered=is_reordered)
        if has_news:
            self._begin()

    def poll_again(self) -> None:
        """Look what each may see: somebody may do something else now."""
        if self._streams and not self._is_closed:
            self._begin()

    def close(self) -> None:
        """End every stream."""
        self._is_closed = True
        for stream in self._all():
            stream.end()
        if self._looking is not None and not self._looking.done():
            self._looking.cancel()

    async def finished(self) -> None:
        """Wait until nobody looks any more. For who closes the database."""
        if self._looking is not None:
            await asyncio.wait((self._looking,))

    def _all(self) -> list[ConsoleStream]:
        return [stream for streams in self._streams.values() for stream in streams]

    def _begin(self) -> None:
        self._news.set()
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_on(), name="console feeds")

    async def _look_on(self) -> None:
        """Look for as long as anybody shows anything."""
        looked_s = time.monotonic()
        while self._streams and not self._is_closed:
            due_s = looked_s + LOOK_S
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), max(0.0, due_s - time.monotonic()))
            if not self._streams:
                return
            if self._news.is_set():
                await asyncio.sleep(SETTLE_S)
            self._news.clear()
            # Where something always changes, the look at all must have its turn, too.
            is_due = time.monotonic() >= due_s
            if is_due:
                looked_s = time.monotonic()
            await self._look_at(self._all(), is_at_all=is_due)

    async def _look_at(self, streams: Iterable[ConsoleStream], *, is_at_all: bool) -> None:
        taken = {stream: (stream.changed, stream.is_reordered) for stream in streams}
        for stream in taken:
            stream.changed, stream.is_reordered = set(), False
        changed = frozenset().union(*(each for each, _ in taken.values()))
        shown = frozenset().union(*(stream.shown for stream in taken)) if is_at_all else frozenset()
        try:
            seen = await self._look(changed, shown - changed, {each.key_id for each in taken})
        except Exception:
            # The boundary of a loop: a database that is away must not end what waits for it.
            log.exception("cannot look for what consoles show, next try in %g s", LOOK_S)
            for stream, (positions, is_reordered) in taken.items():
                stream.offer(positions, is_reordered=is_reordered)
            return
        for stream, (_, is_reordered) in taken.items():
            seer = seen.seers.get(stream.key_id)
            if seer is None:
                stream.end()
            else:
                stream.tell(seen.rows, seer, is_reordered=is_reordered)
