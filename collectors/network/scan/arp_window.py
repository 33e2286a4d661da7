"""The window of addresses that the kernel resolves for the scan at the same time.

``TableRoom`` limits the window, because the addresses in the window fill the machine's neighbour
table. If a scan has more than gc_thresh2 addresses (see table_room.py), the kernel removes entries
from the table. The scan loses no MACs by this, because it reads them from the kernel's events.

No I/O: callers pass ``now``, in seconds of a monotonic clock.
"""

from collections import deque
from collections.abc import Sequence

from collectors.network.scan.targets import Target
from collectors.shared.arp.priming import SETTLE_S
from collectors.shared.arp.table_room import ROOM_UNKNOWN, TableRoom

SLOT_S = 5.0
"""After this time an address leaves the window, even if the kernel has reported no failure. The
kernel reports a failure after three seconds, and slightly later on a busy machine."""


class ArpWindow:
    """Selects the addresses to resolve next, and records which of them answered or failed."""

    def __init__(self, targets: Sequence[Target], room: TableRoom = ROOM_UNKNOWN) -> None:
        self._pending = deque(targets)
        self._total = len(targets)
        self._sent: dict[str, float] = {}  # in order of sending, so the oldest comes first
        self._unanswered: dict[str, Target] = {target.address: target for target in targets}
        self._room = room

    def next_to_resolve(self, limit: int) -> tuple[Target, ...]:
        """Return the next addresses to resolve: at most ``limit``, and no more than fit in the
        neighbour table now."""
        resolved = self._total - len(self._unanswered)
        count = max(0, min(limit, self._room.left(len(self._sent), resolved), len(self._pending)))
        return tuple(self._pending[index] for index in range(count))

    def mark_sent(self, now: float) -> None:
        """Record that the kernel began at ``now`` to resolve the first of the next addresses."""
        target = self._pending.popleft()
        if target.address in self._unanswered:
            self._sent[target.address] = now

    def mark_resolved(self, address: str) -> Target | None:
        """Record that an address has a MAC. Returns its target.

        Returns None if the address is not a target or if its MAC was known before.
        """
        self._sent.pop(address, None)
        return self._unanswered.pop(address, None)

    def mark_failed(self, address: str) -> None:
        """Record that the kernel could not resolve an address."""
        self._sent.pop(address, None)

    def expire(self, now: float) -> None:
        """Remove addresses from the window after `SLOT_S`, even without a failure report."""
        overdue = [address for address, sent_at in self._sent.items() if now - sent_at >= SLOT_S]
        for address in overdue:
            del self._sent[address]

    def settles_at(self) -> float | None:
        """Return the time after which no further address is expected to be resolved.

        Returns None until the kernel has begun to resolve all addresses.
        """
        if self._pending:
            return None
        return next(reversed(self._sent.values())) + SETTLE_S if self._sent else 0.0

    def is_settled(self, now: float) -> bool:
        timestamp = self.settles_at()
        return timestamp is not None and now >= timestamp

    def done_count(self, now: float) -> int:
        """Return how many addresses are resolved, have failed or were silent for `SETTLE_S`."""
        waiting = sum(1 for sent_at in self._sent.values() if now < sent_at + SETTLE_S)
        return self._total - len(self._pending) - waiting

    @property
    def unanswered(self) -> tuple[Target, ...]:
        """The addresses without a MAC so far, including those that were not tried yet."""
        return tuple(self._unanswered.values())

    @property
    def untried_count(self) -> int:
        return len(self._pending)
