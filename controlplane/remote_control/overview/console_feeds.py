"""The open streams of consoles: who shows which devices, and which of them changed.

Only what this process changed is told here. What another process did each stream finds by itself,
because it looks at the devices that it shows every few seconds anyway.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from controlplane.remote_control.event_stream import EventStream


class ConsoleStream(EventStream):
    """One open stream. ``shown`` are the positions of the devices that its console shows."""

    def __init__(self, shown: Collection[int]) -> None:
        super().__init__()
        self.shown = frozenset(shown)
        self._changed: set[int] = set(shown)
        self._is_reordered = False
        self.wake()

    async def next(self, within_s: float) -> tuple[frozenset[int], bool]:
        """Wait for a change. Return which devices it is about, and whether the order is another.

        All that are shown after ``within_s`` without any.
        """
        await self.wait(within_s)
        changed, self._changed = frozenset(self._changed), set()
        is_reordered, self._is_reordered = self._is_reordered, False
        return changed if changed or is_reordered else self.shown, is_reordered

    def offer(self, positions: Collection[int], *, is_reordered: bool) -> None:
        # The smaller set is gone through: a console shows few, a sweep may tell of thousands.
        self._changed |= self.shown.intersection(positions)
        self._is_reordered |= is_reordered
        if self._changed or self._is_reordered:
            self.wake()


class ConsoleFeeds:
    """Used from the event loop only."""

    def __init__(self) -> None:
        self._streams: dict[str, set[ConsoleStream]] = {}
        self._is_closed = False

    @contextmanager
    def open(self, organization_id: str, shown: Collection[int]) -> Iterator[ConsoleStream]:
        """Give a stream, which begins with all that is shown."""
        stream = ConsoleStream(shown)
        if self._is_closed:
            stream.end()
        streams = self._streams.setdefault(organization_id, set())
        streams.add(stream)
        try:
            yield stream
        finally:
            streams.discard(stream)
            if not streams:
                self._streams.pop(organization_id, None)

    def notify(
        self, organization_id: str, positions: Collection[int], *, is_reordered: bool
    ) -> None:
        """Tell of what changed. Called after its commit."""
        for stream in self._streams.get(organization_id, ()):
            stream.offer(positions, is_reordered=is_reordered)

    def close(self) -> None:
        """End every stream."""
        self._is_closed = True
        for streams in self._streams.values():
            for stream in streams:
                stream.end()
