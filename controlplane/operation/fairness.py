"""Limits for each caller, so that no caller slows down other callers.

Each API key has limits for calls per second, concurrent calls, open streams and processor time.
Each organization has limits for calls per second, open streams and processor time. Processor time
is limited because one call can cost a thousand times as much as another. In an organization,
read-only keys and keys with a write grant have separate limits of processor time, so that readers
do not use up the time of the devices. Each process of the service counts separately.
"""

import asyncio
import math
import random
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from controlplane.operation.caller import Caller
from controlplane.operation.errors import rate_limited, unavailable
from controlplane.settings import Settings

StreamKind = Literal["commands", "console"]
STREAM_RETRY_S = 30
"""Shortest wait in seconds that a client is given when its stream is refused. The wait is random,
up to twice this value (`spread`)."""
FREE_S = 0.25
"""Processor seconds of each call of the agent protocol that are not charged to the key's limit for
large bodies (``Settings.processing_share``), which is the smallest limit of processor time. Most
calls of the agent protocol take a tenth of ``FREE_S``.
"""
QUEUE_RETRY_S = 5
"""Shortest wait in seconds that a caller is given when the queue of its organization is full."""
BUCKETS_MAX = 65_536
"""Maximum number of buckets. If there are more, the least recently used bucket is dropped, and its
key starts with a full bucket again."""


@dataclass(slots=True)
class _Bucket:
    """The number of tokens at ``at_s``, the time of the last change."""

    tokens: float
    at_s: float


class RateLimit:
    """A token bucket for each key: at most ``burst`` tokens, and ``rate_per_s`` new ones a second.

    A key is the id of an API key or an organization, for example. A token is a call, or a second of
    processor time. Use it from the event loop only.

    Args:
        rate_per_s: 0 for no limit.
        monotonic: returns seconds.
    """

    def __init__(self, rate_per_s: float, burst: float, monotonic: Callable[[], float]) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._monotonic = monotonic
        self._buckets: OrderedDict[Hashable, _Bucket] = OrderedDict()

    def take(self, key: Hashable) -> int:
        """Take one token and return 0, or return the whole seconds until one is available."""
        if self._rate_per_s <= 0:
            return 0
        bucket = self._refilled(key)
        if bucket.tokens >= 1:
            bucket.tokens -= 1
            return 0
        return max(1, math.ceil((1 - bucket.tokens) / self._rate_per_s))

    def give_back(self, key: Hashable) -> None:
        """Return a token that `take` has taken."""
        self.charge(key, -1)

    def overdrawn_s(self, key: Hashable) -> int:
        """Return the whole seconds until the bucket is no longer overdrawn (`charge`), or 0."""
        if self._rate_per_s <= 0:
            return 0
        debt = -self._refilled(key).tokens
        return max(1, math.ceil(debt / self._rate_per_s)) if debt > 0 else 0

    def charge(self, key: Hashable, amount: float) -> None:
        """Take ``amount`` tokens, even if the bucket has fewer and is then overdrawn."""
        if self._rate_per_s > 0:
            self._refilled(key).tokens -= amount

    def _refilled(self, key: Hashable) -> _Bucket:
        now_s = self._monotonic()
        bucket = self._buckets.pop(key, None) or _Bucket(self._burst, now_s)
        gain = max(0.0, now_s - bucket.at_s) * self._rate_per_s
        bucket.tokens, bucket.at_s = min(self._burst, bucket.tokens + gain), now_s
        self._buckets[key] = bucket
        while len(self._buckets) > BUCKETS_MAX:
            self._buckets.popitem(last=False)
        return bucket


class Fairness:
    """Applies the limits. Use it from the event loop only. ``monotonic`` returns seconds."""

    def __init__(self, settings: Settings, monotonic: Callable[[], float]) -> None:
        self._settings = settings
        self._calls = RateLimit(settings.rate_per_s, settings.burst, monotonic)
        self._organizations_calls = RateLimit(
            settings.organization_rate_per_s, settings.organization_burst, monotonic
        )
        # The limit for large bodies, and for long calls of the agent protocol. The other limits of
        # processor time are for all calls.
        self._processing = RateLimit(
            settings.processing_share, settings.processing_burst_s, monotonic
        )
        is_limited = settings.rate_per_s > 0  # a rate of 0 also turns off the limits of call time
        self._call_time = RateLimit(
            settings.call_share if is_limited else 0, settings.call_burst_s, monotonic
        )
        self._organizations_call_time = RateLimit(
            settings.organization_call_share if is_limited else 0,
            settings.organization_call_burst_s,
            monotonic,
        )
        self._under_way: Counter[UUID] = Counter()
        self._streams: Counter[Hashable] = Counter()

    def admit(self, caller: Caller) -> None:
        """Count a call. If a limit is reached, raise the refusal with the time to wait."""
        # The limits of the key come first, so that calls that they refuse do not use up the limits
        # of the organization.
        if self._under_way[caller.key_id] >= self._settings.calls_at_once:
            raise rate_limited(spread(1))
        wait_s = (
            self._processing.overdrawn_s(caller.key_id)
            or self._call_time.overdrawn_s(caller.key_id)
            or self._calls.take(caller.key_id)
            or self._organizations_call_time.overdrawn_s(_call_time_key(caller))
            or self._organizations_calls.take(caller.organization_id)
        )
        if wait_s:
            raise rate_limited(spread(wait_s))

    @contextmanager
    def call(self, caller: Caller) -> Iterator[None]:
        """Count a call as concurrent as long as the context lasts."""
        self._under_way[caller.key_id] += 1
        try:
            yield
        finally:
            self._under_way[caller.key_id] -= 1
            if not self._under_way[caller.key_id]:
                del self._under_way[caller.key_id]

    @contextmanager
    def stream(self, caller: Caller, kind: StreamKind = "commands") -> Iterator[None]:
        """Count an open stream as long as the context lasts. Raises a refusal at the limit.

        A key has separate limits for the streams of consoles and of devices. Therefore consoles do
        not use up the streams of devices, and devices do not use up those of consoles.
        """
        key_limits = {
            "commands": self._settings.key_streams_max,
            "console": self._settings.key_consoles_max,
        }
        limits: dict[Hashable, int] = {
            None: self._settings.streams_max,  # all streams of this process
            caller.organization_id: self._settings.organization_streams_max,
            (kind, caller.key_id): key_limits[kind],
        }
        for key, limit in limits.items():
            if self._streams[key] >= limit:
                raise unavailable(
                    f"too many streams are open ({kind})", wait_s=spread(STREAM_RETRY_S)
                )
        self._streams.update(limits.keys())
        try:
            yield
        finally:
            self._streams.subtract(limits.keys())
            for key in limits:
                if not self._streams[key]:
                    del self._streams[key]

    def charge(self, caller: Caller, processor_s: float, *, free_s: float = 0.0) -> None:
        """Charge a caller and its organization for the processor seconds of a call.

        Args:
            free_s: this many of the seconds are not charged to the key's limit for large bodies,
                which is the smallest limit of processor time.
        """
        self._call_time.charge(caller.key_id, processor_s)
        self._organizations_call_time.charge(_call_time_key(caller), processor_s)
        self._processing.charge(caller.key_id, max(0.0, processor_s - free_s))


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
        """Wait until a call of the organization can start. The call ends with the context.

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
            raise rate_limited(spread(QUEUE_RETRY_S))
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(organization_id, turn)
            else:  # the call was started before it was cancelled
                self._end(organization_id)
            raise

    def _end(self, organization_id: str) -> None:
        self._running[organization_id] -= 1
        if not self._running[organization_id]:
            del self._running[organization_id]
        while (next_organization := next(filter(self._has_room, self._waiting), None)) is not None:
            self._start_first(next_organization)

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


def _call_time_key(caller: Caller) -> tuple[str, bool]:
    """Return the key of the bucket in which the organization's processor time is counted.

    An organization has one bucket for callers that can write, and one for callers that cannot.
    """
    return caller.organization_id, caller.can_write


def spread(wait_s: int) -> int:
    """Return a random wait from ``wait_s`` to twice ``wait_s``.

    The wait is random so that callers that were refused together do not return together.
    """
    return wait_s + random.randint(0, wait_s)  # noqa: S311 - not a secret
