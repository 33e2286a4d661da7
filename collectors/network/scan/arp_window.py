"""The window of addresses the kernel is resolving for the scan.

An absent host holds an entry of the kernel's neighbour table for about 3 s (three requests, one a
second). The table overflows at 1024 entries and is swept at 512, which makes hosts vanish and
hurts the machine's own traffic, so no more than ``UNRESOLVED_MAX`` are asked for at once.

Pure: ``now`` is given, in seconds of a monotonic clock.
"""

from collections import deque
from collections.abc import Sequence

from collectors.network.scan.targets import Target

UNRESOLVED_MAX = 480
SETTLE_S = 2.25
"""How long an answer is waited for: the kernel's third and last request goes out after 2 s."""
SLOT_S = 3.3
"""After which a slot is free even if the kernel did not say that it gave up."""


class ArpWindow:
    """Hands out addresses to ask for and takes back those that answered or failed."""

    def __init__(self, targets: Sequence[Target], limit: int = UNRESOLVED_MAX) -> None:
        self._pending = deque(targets)
        self._known = {target.address: target for target in targets}
        self._asked: dict[str, float] = {}  # in the order asked, so the oldest comes first
        self._unanswered: dict[str, Target] = dict(self._known)
        self._limit = limit

    def next_to_ask(self, room: int) -> tuple[Target, ...]:
        """Return up to ``room`` addresses for which a slot is free."""
        count = max(0, min(room, self._limit - len(self._asked), len(self._pending)))
        return tuple(self._pending[index] for index in range(count))

    def asked(self, now: float) -> None:
        """The first of ``next_to_ask`` was asked for."""
        target = self._pending.popleft()
        if target.address in self._unanswered:
            self._asked[target.address] = now

    def resolved(self, address: str) -> Target | None:
        """A MAC came for an address; None when it is none of ours or came before."""
        self._asked.pop(address, None)
        return self._unanswered.pop(address, None)

    def failed(self, address: str) -> None:
        """The kernel gave up on an address."""
        self._asked.pop(address, None)

    def expire(self, now: float) -> None:
        """Free the slots whose end the kernel did not tell."""
        overdue = [address for address, then in self._asked.items() if now - then >= SLOT_S]
        for address in overdue:
            del self._asked[address]

    def settles_at(self) -> float | None:
        """Return the moment after which no first answer is expected; None: more are to be asked."""
        if self._pending:
            return None
        return next(reversed(self._asked.values())) + SETTLE_S if self._asked else 0.0

    def is_settled(self, now: float) -> bool:
        moment = self.settles_at()
        return moment is not None and now >= moment

    def done_count(self, now: float) -> int:
        """Return how many addresses are resolved, failed or past their settle time."""
        waiting = sum(1 for then in self._asked.values() if now < then + SETTLE_S)
        return len(self._known) - len(self._pending) - waiting

    @property
    def unanswered(self) -> tuple[Target, ...]:
        """The addresses without a MAC so far, those not yet asked for included."""
        return tuple(self._unanswered.values())

    @property
    def unasked_count(self) -> int:
        return len(self._pending)
