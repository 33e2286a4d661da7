"""The open streams of consoles, and the poll that serves all of them.

A process has one poll of the database for all of its consoles. The poll runs shortly after a change
in the process itself. It also runs every few seconds, to find changes by other processes and
changes that no call causes, such as a device that is no longer online.
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
from controlplane.operation.caller import Caller

log = logging.getLogger("controlplane.devices.overview.console_feeds")
SETTLE_S: Final = 0.2
"""Delay of a poll after a change. The poll then also finds changes that follow soon: requests often
change several times within a short time."""
POLL_S: Final = 5.0
"""Interval of the poll for all displayed devices."""


@dataclass(frozen=True, slots=True)
class EncodedRow:
    """The row of a device as JSON, with its organization and location."""

    organization_id: str
    location_id: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The result of a poll.

    Attributes:
        rows: rows of devices by row key (``Device.position``).
        callers: callers by the id of their credential. A credential without a caller in this
            mapping is no longer valid.
    """

    rows: Mapping[int, EncodedRow]
    callers: Mapping[UUID, Caller]


Poll = Callable[[Collection[int], Collection[int], Collection[UUID]], Awaitable[Snapshot]]
"""Takes the row keys of devices to read in any case, the row keys of devices to read only if they
changed, and the ids of credentials."""


class ConsoleStream(EventStream):
    """The open stream of one console.

    Attributes:
        key_id: id of the credential with which the stream was opened.
        displayed: row keys (``Device.position``) of the devices that the console displays.
        changed: row keys of displayed devices that the next poll must read in any case.
        is_reordered: whether the order of devices has changed since the last poll.
        _sent: for each device, the row that was last given to the console.
        _queued: rows that `next` returns.
        _must_reload: whether `next` reports that the order of devices changed.
    """

    def __init__(self, key_id: UUID, displayed: Collection[int]) -> None:
        super().__init__()
        self.key_id = key_id
        self.displayed = frozenset(displayed)
        self.changed: set[int] = set(displayed)
        self.is_reordered = False
        self._sent: dict[int, bytes] = {}
        self._queued: dict[int, bytes] = {}
        self._must_reload = False

    async def next(self, within_s: float) -> tuple[tuple[bytes, ...], bool]:
        """Wait for changes. Return changed rows, and whether the order of devices changed.

        Returns no rows and False if nothing changes within ``within_s``, or if the stream ends.
        """
        await self.wait(within_s)
        new_rows, self._queued = tuple(self._queued.values()), {}
        must_reload, self._must_reload = self._must_reload, False
        return new_rows, must_reload

    def offer(self, positions: Collection[int], *, is_reordered: bool) -> bool:
        """Add devices that the next poll must read. Return whether this console needs a poll."""
        # One change can affect thousands of devices, but this console displays only a few of them.
        self.changed |= self.displayed.intersection(positions)
        self.is_reordered |= is_reordered
        return bool(self.changed) or self.is_reordered

    def update(self, rows: Mapping[int, EncodedRow], caller: Caller, *, is_reordered: bool) -> None:
        """Queue the rows that this console displays and has not received yet."""
        for position in self.displayed & rows.keys():
            row = rows[position]
            is_visible = caller.may_see(row.organization_id, row.location_id)
            if is_visible and self._sent.get(position) != row.data:
                self._sent[position] = self._queued[position] = row.data
        self._must_reload |= is_reordered
        if self._queued or self._must_reload:
            self.wake()


class ConsoleFeeds:
    """The open streams of the consoles of this process. Use it from the event loop only.

    ``_streams`` has the streams by organization id. ``_wakeup`` is set if a poll must run, or if
    the poll loop must end. ``_poll_task`` is the task of this loop.
    """

    def __init__(self, poll: Poll) -> None:
        self._poll = poll
        self._streams: dict[str, set[ConsoleStream]] = {}
        self._wakeup = asyncio.Event()
        self._poll_task: asyncio.Task[None] | None = None
        self._is_closed = False

    @contextlib.contextmanager
    def open(
        self, organization_id: str, key_id: UUID, displayed: Collection[int]
    ) -> Iterator[ConsoleStream]:
        """Open a stream. It first sends all displayed devices."""
        stream = ConsoleStream(key_id, displayed)
        streams = self._streams.setdefault(organization_id, set())
        streams.add(stream)
        if self._is_closed:
            stream.end()
        else:
            self._start_poll()
        try:
            yield stream
        finally:
            streams.discard(stream)
            if not streams:
                self._streams.pop(organization_id, None)
            if not self._streams:
                self._wakeup.set()  # no stream is left, so the poll loop must end

    def notify(
        self, organization_id: str, positions: Collection[int], *, is_reordered: bool
    ) -> None:
        """Start a poll if a console displays a changed device, or if the order of devices changed.

        Call this after the commit.
        """
        streams = self._streams.get(organization_id, ())
        needs_poll = False
        for stream in streams:
            needs_poll |= stream.offer(positions, is_reordered=is_reordered)
        if needs_poll:
            self._start_poll()

    def poll_again(self) -> None:
        """Poll again because permissions changed."""
        if self._streams and not self._is_closed:
            self._start_poll()

    def close(self) -> None:
        """End every stream."""
        self._is_closed = True
        for stream in self._all_streams():
            stream.end()
        if self._poll_task is not None and not self._poll_task.done():
            self._poll_task.cancel()

    async def wait_for_poll(self) -> None:
        """Wait until the running poll ends. Call this before the database is closed."""
        if self._poll_task is not None:
            await asyncio.wait((self._poll_task,))

    def _all_streams(self) -> list[ConsoleStream]:
        return [stream for streams in self._streams.values() for stream in streams]

    def _start_poll(self) -> None:
        self._wakeup.set()
        if self._poll_task is None or self._poll_task.done():
            self._poll_task = asyncio.create_task(self._poll_loop(), name="console feeds")

    async def _poll_loop(self) -> None:
        """Poll while there are streams."""
        polled_s = time.monotonic()
        while self._streams and not self._is_closed:
            due_s = polled_s + POLL_S
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wakeup.wait(), max(0.0, due_s - time.monotonic()))
            if not self._streams:
                return
            if self._wakeup.is_set():
                await asyncio.sleep(SETTLE_S)
            self._wakeup.clear()
            # The poll for all displayed devices is on time, even if some devices change constantly.
            is_due = time.monotonic() >= due_s
            if is_due:
                polled_s = time.monotonic()
            await self._poll_streams(self._all_streams(), is_full=is_due)

    async def _poll_streams(self, streams: Iterable[ConsoleStream], *, is_full: bool) -> None:
        """Poll for changed devices, and with ``is_full`` for all displayed devices."""
        changes_by_stream = {stream: (stream.changed, stream.is_reordered) for stream in streams}
        for stream in changes_by_stream:
            stream.changed, stream.is_reordered = set(), False
        changed_positions = frozenset().union(*(each for each, _ in changes_by_stream.values()))
        displayed_positions = (
            frozenset().union(*(stream.displayed for stream in changes_by_stream))
            if is_full
            else frozenset()
        )
        try:
            snapshot = await self._poll(
                changed_positions,
                displayed_positions - changed_positions,
                {each.key_id for each in changes_by_stream},
            )
        except Exception:
            # Every error is caught, because the loop must survive an unavailable database.
            log.exception("cannot poll for consoles, next attempt in %g s", POLL_S)
            for stream, (positions, is_reordered) in changes_by_stream.items():
                stream.offer(positions, is_reordered=is_reordered)
            return
        for stream, (_, is_reordered) in changes_by_stream.items():
            caller = snapshot.callers.get(stream.key_id)
            if caller is None:
                stream.end()
            else:
                stream.update(snapshot.rows, caller, is_reordered=is_reordered)
