"""What one caller may take of the service, so that the others do not feel it.

Each API key and each organization may make so many calls a second, have so many under way, keep so
many streams open, and use so much of the processor: a body of the permitted size can cost a hundred
times what a usual one does. All are counted in this process.
"""

import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Literal
from uuid import UUID

from controlplane.operation.caller import Caller
from controlplane.operation.errors import rate_limited, unavailable
from controlplane.operation.rate_limit import RateLimit
from controlplane.settings import Settings

StreamOf = Literal["commands", "console"]
AGAIN_S = 30
"""How long who is refused a stream should wait, and up to twice as long."""


class Fairness:
    """Used from the event loop only. ``monotonic`` returns seconds."""

    def __init__(self, settings: Settings, monotonic: Callable[[], float]) -> None:
        self._settings = settings
        self._calls = RateLimit(settings.rate_per_s, settings.burst, monotonic)
        self._organizations_calls = RateLimit(
            settings.organization_rate_per_s, settings.organization_burst, monotonic
        )
        self._processing = RateLimit(
            settings.processing_share, settings.processing_burst_s, monotonic
        )
        self._under_way: Counter[UUID] = Counter()
        self._streams: Counter[Hashable] = Counter()

    def admit(self, caller: Caller) -> None:
        """Count a call. Raises the refusal of one too many, with the time to wait."""
        # In turn: a key that is refused must not use up what its organization has.
        wait_s = (
            self._processing.wait(caller.key_id)
            or self._calls.take(caller.key_id)
            or self._organizations_calls.take(caller.organization_id)
        )
        if wait_s:
            raise rate_limited(spread(wait_s))
        if self._under_way[caller.key_id] >= self._settings.calls_at_once:
            raise rate_limited(spread(1))

    @contextmanager
    def call(self, caller: Caller) -> Iterator[None]:
        """Count a call as under way."""
        self._under_way[caller.key_id] += 1
        try:
            yield
        finally:
            self._under_way[caller.key_id] -= 1
            if not self._under_way[caller.key_id]:
                del self._under_way[caller.key_id]

    @contextmanager
    def stream(self, caller: Caller, of: StreamOf = "commands") -> Iterator[None]:
        """Count an open stream. Raises the refusal of one too many.

        A key's consoles and its devices have limits of their own: neither shuts out the other.
        """
        own = {
            "commands": self._settings.key_streams_max,
            "console": self._settings.key_consoles_max,
        }
        limits: dict[Hashable, int] = {
            None: self._settings.streams_max,
            caller.organization_id: self._settings.organization_streams_max,
            (of, caller.key_id): own[of],
        }
        for each, limit in limits.items():
            if self._streams[each] >= limit:
                raise unavailable(f"too many {of} streams are open", wait_s=spread(AGAIN_S))
        self._streams.update(limits.keys())
        try:
            yield
        finally:
            self._streams.subtract(limits.keys())
            for each in limits:
                if not self._streams[each]:
                    del self._streams[each]

    def charge(self, caller: Caller, processor_s: float) -> None:
        """Note what it took to read a large body: seconds of a processor."""
        self._processing.charge(caller.key_id, processor_s)


def spread(wait_s: int) -> int:
    """Return so many seconds to twice as many, so that those who were refused together do not come
    back together."""
    return wait_s + random.randint(0, wait_s)  # noqa: S311 - spreads, hides nothing
