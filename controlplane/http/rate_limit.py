"""A token bucket for each API key: ``burst`` calls at once, ``rate_per_s`` in the long run."""

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

BUCKETS_MAX = 4096
"""The least recently used bucket is forgotten beyond this, which gives its key a full one."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at_s: float


class RateLimit:
    """Used from the event loop only. ``monotonic`` returns seconds. ``rate_per_s`` 0: no limit."""

    def __init__(self, rate_per_s: float, burst: int, monotonic: Callable[[], float]) -> None:
        self._rate_per_s = rate_per_s
        self._burst = max(burst, 1)
        self._monotonic = monotonic
        self._buckets: OrderedDict[UUID, _Bucket] = OrderedDict()

    def take(self, key_id: UUID) -> int:
        """Take one token. Return 0, or the whole seconds to wait until there is one."""
        if self._rate_per_s <= 0:
            return 0
        bucket = self._refilled(key_id)
        if bucket.tokens >= 1:
            bucket.tokens -= 1
            return 0
        return max(1, math.ceil((1 - bucket.tokens) / self._rate_per_s))

    def _refilled(self, key_id: UUID) -> _Bucket:
        now_s = self._monotonic()
        bucket = self._buckets.pop(key_id, None) or _Bucket(self._burst, now_s)
        gained = max(0.0, now_s - bucket.at_s) * self._rate_per_s
        bucket.tokens, bucket.at_s = min(self._burst, bucket.tokens + gained), now_s
        self._buckets[key_id] = bucket
        while len(self._buckets) > BUCKETS_MAX:
            self._buckets.popitem(last=False)
        return bucket
