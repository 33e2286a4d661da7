"""A queue of calls, which is fair between organizations."""

import asyncio
import math
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from controlplane.operation.errors import rate_limited
from controlplane.operation.fairness import spread

AGAIN_S: Final = 5
"""Shortest wait in seconds that a caller is given when the queue of its organization is full."""


class FairQueue:
    """Lets at most ``running_max`` calls run at once. Use it from the event loop only.

    Waiting calls start in rotation between organizations. If ``running_max`` is above 1, the calls
    of one organization never take the last place, so that a call of another organization can start.

    Args:
        waiting_max: maximum number of waiting calls of one organization.
    """

    def __init__(self, running_max: int, waiting_max: float = math.inf) -> None:
        self._running_max = running_max
        self._organization_max = max(1, running_max - 1)
        self._waiting_max = waiting_max
        self._running: Counter[str] = Counter()
        # The organizations are in the order of their next turn.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, organization_id: str) -> AsyncIterator[None]:
        """Wait until a call of the organization can start. It runs as long as the context lasts.

        Raises a refusal if too many calls of the organization wait.
        """
        await self._begin(organization_id)
        try:
            yield
        finally:
            self._end(organization_id)

    async def _begin(self, organization_id: str) -> None:
        if organization_id not in self._waiting and self._has_room(organization_id):
            self._running[organization_id] += 1
            return
        queue = self._waiting.setdefault(organization_id, deque())
        if len(queue) >= self._waiting_max:
            raise rate_limited(spread(AGAIN_S))
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(organization_id, turn)
            else:
                self._end(organization_id)
            raise

    def _end(self, organization_id: str) -> None:
        self._running[organization_id] -= 1
        if not self._running[organization_id]:
            del self._running[organization_id]
        while (following := next(filter(self._has_room, self._waiting), None)) is not None:
            self._start_first(following)

    def _start_first(self, organization_id: str) -> None:
        """Start the first waiting call, and move the organization to the end of the rotation."""
        queue = self._waiting.pop(organization_id)
        turn = queue.popleft()
        if queue:
            self._waiting[organization_id] = queue
        if not turn.cancelled():
            self._running[organization_id] += 1
            turn.set_result(None)

    def _leave(self, organization_id: str, turn: asyncio.Future[None]) -> None:
        queue = self._waiting.get(organization_id, deque())
        if turn in queue:
            queue.remove(turn)
            if not queue:
                del self._waiting[organization_id]

    def _has_room(self, organization_id: str) -> bool:
        return (
            self._running.total() < self._running_max
            and self._running[organization_id] < self._organization_max
        )
