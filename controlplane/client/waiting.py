"""How long a client waits after the replies 429 and 503 before it repeats a call."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final

WAITED_MAX_S: Final = 120.0
"""Maximum of the sum of all waits of one call."""
_FIRST_S: Final = 1.0
_LONGEST_S: Final = 20.0
"""First and longest wait without ``Retry-After``. The wait doubles each time. Each
wait is shortened at random, by up to half.
"""
_SPREAD: Final = 0.25
_SPREAD_MIN_S: Final = 0.1
"""A wait that ``Retry-After`` requires is lengthened at random, by up to `_SPREAD` of its
duration or by up to `_SPREAD_MIN_S` seconds, whichever is more.
"""
_REPEATABLE: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
_NOTHING_WAS_DONE: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS})
"""Statuses after which the call certainly had no effect: 429 (RFC 6585, section 4). After a 503,
the call may have had an effect: a proxy may have stopped waiting before the service completed
the call.
"""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How a client waits before it repeats a call.

    ``total_wait_max_s`` is the maximum of the sum of all waits of one call. Before each wait,
    ``on_wait`` is called with its duration in seconds and the status.
    """

    on_wait: Callable[[float, int], None] = lambda _seconds, _status: None
    sleep: Callable[[float], None] = time.sleep
    rng: random.Random = field(default_factory=random.Random)
    total_wait_max_s: float = WAITED_MAX_S

    def waits(self, *, is_repeatable: bool) -> "Waits":
        return Waits(self, _REPEATABLE if is_repeatable else _NOTHING_WAS_DONE)


class Waits:
    """The waits of one call."""

    def __init__(self, retry_policy: RetryPolicy, statuses: frozenset[HTTPStatus]) -> None:
        self._retry_policy = retry_policy
        self._statuses = statuses
        self._waited_s = 0.0
        self._next_s = _FIRST_S

    def wait(self, status: int, retry_after: str | None) -> bool:
        """Wait, and return True if the call must now be repeated.

        Returns False, without a wait, if the status does not permit a repetition, or if the sum of
        all waits would exceed ``total_wait_max_s``.

        The duration of each wait is partly random, so that clients that were refused at the same
        time do not repeat their calls at the same time.
        """
        if status not in self._statuses:
            return False
        rng, required_s = self._retry_policy.rng, seconds_of(retry_after)
        if required_s is None:
            wait_s = self._next_s * rng.uniform(0.5, 1.0)
            self._next_s = min(self._next_s * 2, _LONGEST_S)
        else:
            wait_s = required_s + rng.uniform(0.0, max(required_s * _SPREAD, _SPREAD_MIN_S))
        if self._waited_s + wait_s > self._retry_policy.total_wait_max_s:
            return False
        self._waited_s += wait_s
        self._retry_policy.on_wait(wait_s, status)
        self._retry_policy.sleep(wait_s)
        return True


def seconds_of(retry_after: str | None, now: datetime | None = None) -> float | None:
    """Return the seconds of a ``Retry-After``: a number or a date (RFC 9110, section 10.2.3).

    Returns None if the header is missing or invalid.
    """
    text = (retry_after or "").strip()
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        timestamp = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    timestamp = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)
    return max(0.0, (timestamp - (now or datetime.now(UTC))).total_seconds())
