"""A token bucket for each key: ``burst`` at once, ``rate_per_s`` in the long run.

A token is a call, or a second of the processor's time.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

BUCKETS_MAX = 65_536
"""The least recently used bucket is forgotten beyond this, which gives its key a full one."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at_s: float


class RateLimit:
    """Used from the event loop only. ``monotonic`` returns seconds. ``rate_per_s`` 0: no limit."""

    def __init__(self, rate_per_s: float, burst: float, monotonic: Callable[[], float]) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._monotonic = monotonic
        self._buckets: OrderedDict[Hashable, _Bucket] = OrderedDict()

    def take(self, key: Hashable) -> int:
        """Take one token. Return 0, or the whole seconds to wait until there is one."""
        if self._rate_per_s <= 0:
            return 0
        bucket = self._refilled(key)
        if bucket.tokens >= 1:
            bucket.tokens -= 1
            return 0
        return max(1, math.ceil((1 - bucket.tokens) / self._rate_per_s))

    def wait(self, key: Hashable) -> int:
        """Return the whole seconds until more has come in than was charged; 0 if it has."""
        if self._rate_per_s <= 0:
            return 0
        owed = -self._refilled(key).tokens
        return max(1, math.ceil(owed / self._rate_per_s)) if owed > 0 else 0

    def charge(self, key: Hashable, amount: float) -> None:
        """Take ``amount``, whether or not there is so much."""
        if self._rate_per_s > 0:
            self._refilled(key).tokens -= amount

    def _refilled(self, key: Hashable) -> _Bucket:
        now_s = self._monotonic()
        bucket = self._buckets.pop(key, None) or _Bucket(self._burst, now_s)
        gained = max(0.0, now_s - bucket.at_s) * self._rate_per_s
        bucket.tokens, bucket.at_s = min(self._burst, bucket.tokens + gained), now_s
        self._buckets[key] = bucket
        while len(self._buckets) > BUCKETS_MAX:
            self._buckets.popitem(last=False)
        return bucket
