"""The window of addresses that the kernel resolves for the scan at the same time.

For an address without a host, the kernel sends three ARP requests, one a second. During these 3 s
the address has an entry in the neighbour table, which cannot be removed. The whole machine, with
its containers, has one table. If it is full, hosts vanish and the machine's own traffic fails. So
the scan fills only a share of the table.

The table has three thresholds (arp(7)). At gc_thresh3, 1024 by default, the kernel refuses new
entries. Above gc_thresh2, 512 by default, a new entry makes the kernel remove others, at most every
5 s. It removes failed entries, which the scan caused, and entries that were not confirmed for 5 s.
The next packet to a removed neighbour costs one ARP request. Failed entries stay in the table until
the kernel removes them in this way. So a scan of more than gc_thresh2 addresses exceeds this
threshold, whatever the size of its window. The scan loses no MACs because of this: it reads them
from the kernel's events, not from the table.

Pure: callers pass ``now``, in seconds of a monotonic clock.
"""

import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from collectors.network.scan.targets import Target

UNRESOLVED_DEFAULT = 480
"""The most unresolved addresses at once if the size of the table is not known."""
UNRESOLVED_MAX = 640
"""The most unresolved addresses at once in a table of any size. Each address causes one broadcast a
second on the link."""
UNRESOLVED_MIN = 16
"""How many unresolved addresses the scan may have at once even if the table is nearly full. So the
scan still ends."""
UNRESOLVED_SHARE = 0.6
"""The share of the table that unresolved addresses and the entries of other programs may fill."""
FILLED_SHARE = 0.85
"""The share of the table that three kinds of entries may fill together: unresolved addresses,
entries of other programs, and addresses that the scan has resolved. A resolved address stays in the
table for half a minute."""
SETTLE_S = 2.25
"""How long to wait for an ARP answer. The kernel sends its third and last request after 2 s."""
SLOT_S = 5.0
"""After this time an address no longer counts as unresolved, even if the kernel did not report that
it failed. The kernel reports it after three seconds, and some tenths later on a busy machine."""


@dataclass(frozen=True, slots=True)
class TableRoom:
    """How much of the neighbour table the scan may fill.

    ``unresolved`` is the most unresolved addresses at once. ``entries`` is the most entries of
    unresolved and resolved addresses together.
    """

    unresolved: int = UNRESOLVED_DEFAULT
    entries: int = sys.maxsize

    @classmethod
    def in_table(cls, entries_max: int, occupied: int) -> Self:
        """Return the room in a table of ``entries_max``, in which ``occupied`` entries belong to
        other programs and cannot be removed."""
        unresolved = int(entries_max * UNRESOLVED_SHARE) - occupied
        return cls(
            unresolved=max(UNRESOLVED_MIN, min(UNRESOLVED_MAX, unresolved)),
            entries=int(entries_max * FILLED_SHARE) - occupied,
        )

    def left(self, unresolved: int, resolved: int) -> int:
        """Return how many more addresses the scan may resolve now. ``unresolved`` and ``resolved``
        are the numbers of its addresses that are in the table now."""
        allowed = max(UNRESOLVED_MIN, self.entries - resolved)
        return max(0, min(self.unresolved, allowed) - unresolved)


ROOM_UNKNOWN = TableRoom()


class ArpWindow:
    """Selects the addresses to resolve next, and records which of them answered or failed."""

    def __init__(self, targets: Sequence[Target], room: TableRoom = ROOM_UNKNOWN) -> None:
        self._pending = deque(targets)
        self._total = len(targets)
        self._sent: dict[str, float] = {}  # in order of sending, so the oldest comes first
        self._unanswered: dict[str, Target] = {each.address: each for each in targets}
        self._room = room

    def next_to_ask(self, room: int) -> tuple[Target, ...]:
        """Return the next addresses to resolve: at most ``room``, or fewer if the table is full."""
        resolved = self._total - len(self._unanswered)
        count = max(0, min(room, self._room.left(len(self._sent), resolved), len(self._pending)))
        return tuple(self._pending[index] for index in range(count))

    def mark_sent(self, now: float) -> None:
        """Record that the kernel began to resolve the first address of `next_to_ask` at ``now``."""
        target = self._pending.popleft()
        if target.address in self._unanswered:
            self._sent[target.address] = now

    def resolved(self, address: str) -> Target | None:
        """Record that an address has a MAC. Returns its target.

        Returns None if the address is not a target or if its MAC was known before.
        """
        self._sent.pop(address, None)
        return self._unanswered.pop(address, None)

    def failed(self, address: str) -> None:
        """Record that the kernel could not resolve an address."""
        self._sent.pop(address, None)

    def expire(self, now: float) -> None:
        """Stop counting addresses as unresolved after `SLOT_S`, even without a failure report."""
        overdue = [address for address, then in self._sent.items() if now - then >= SLOT_S]
        for address in overdue:
            del self._sent[address]

    def settles_at(self) -> float | None:
        """Return the time after which no address is expected to answer for the first time.

        Returns None as long as there are addresses that the kernel was not asked to resolve.
        """
        if self._pending:
            return None
        return next(reversed(self._sent.values())) + SETTLE_S if self._sent else 0.0

    def is_settled(self, now: float) -> bool:
        timestamp = self.settles_at()
        return timestamp is not None and now >= timestamp

    def done_count(self, now: float) -> int:
        """Return how many addresses are resolved, have failed or were silent for `SETTLE_S`."""
        waiting = sum(1 for then in self._sent.values() if now < then + SETTLE_S)
        return self._total - len(self._pending) - waiting

    @property
    def unanswered(self) -> tuple[Target, ...]:
        """The addresses without a MAC so far, including those that were not tried yet."""
        return tuple(self._unanswered.values())

    @property
    def unasked_count(self) -> int:
        return len(self._pending)
