"""Wakes the command streams of an API key when there may be something new for them."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from uuid import UUID


class Notifications:
    """Used from the event loop only. Once closed, every listener is woken and finds it so."""

    def __init__(self) -> None:
        self._listeners: dict[UUID, set[asyncio.Event]] = {}
        self.is_closed = False

    @property
    def listener_count(self) -> int:
        return sum(len(events) for events in self._listeners.values())

    @contextmanager
    def listen(self, key_id: UUID) -> Iterator[asyncio.Event]:
        """Give an event that is set at each ring; the listener clears it."""
        event = asyncio.Event()
        events = self._listeners.setdefault(key_id, set())
        events.add(event)
        try:
            yield event
        finally:
            events.discard(event)
            if not events:
                self._listeners.pop(key_id, None)

    def notify(self, key_ids: Iterable[UUID]) -> None:
        for key_id in key_ids:
            for event in self._listeners.get(key_id, ()):
                event.set()

    def close(self) -> None:
        self.is_closed = True
        self.notify(tuple(self._listeners))
