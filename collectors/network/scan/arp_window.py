"""The window of addresses the kernel is resolving for the scan.

An absent host holds an entry of the kernel's neighbour table for about 3 s (three requests, one a
second), and nothing can take it away meanwhile. The table is one for the whole machine, its
containers included, and one that is full makes hosts vanish and hurts the machine's own traffic.
So the scan resolves only a share of it at once.

Of the table's three bounds (arp(7)) only gc_thresh3, 1024 by default, refuses an entry. Above
gc_thresh2, by default 512, a new entry makes the kernel search, at most every 5 s, for entries to
drop: failed ones, which are ours, and those that are unconfirmed for 5 s, which cost the next
sender one ARP request. Failed addresses stay in the table until then, so every larger
scan comes there, whatever its window; its own MACs are read as they come and not from the table.

Pure: ``now`` is given, in seconds of a monotonic clock.
"""

import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from collectors.network.scan.targets import Target

UNRESOLVED_MAX = 480
"""Addresses asked for at once where the table's size is not known."""
UNRESOLVED_MOST = 640
"""Addresses asked for at once in a table of any size: each is a broadcast a second on the link."""
UNRESOLVED_LEAST = 16
"""Addresses asked for at once in a table that is nearly full: a scan must come to its end."""
UNRESOLVED_SHARE = 0.6
"""The share of the table for unresolved addresses and for entries that cannot be dropped."""
FILLED_SHARE = 0.85
"""The share of the table for those and for hosts that were found, which stay half a minute."""
SETTLE_S = 2.25
"""How long to wait for an answer: the kernel sends its third and last request after 2 s."""
SLOT_S = 5.0
"""After this time a slot is free even if the kernel did not report the failure. The kernel needs
three seconds, and some tenths more on a busy machine. It keeps the entry until then."""


@dataclass(frozen=True, slots=True)
class TableRoom:
    """How many addresses may be ``unresolved`` at once, and how many ``entries`` they and the hosts
    found may have in the neighbour table."""

    unresolved: int = UNRESOLVED_MAX
    entries: int = sys.maxsize

    @classmethod
    def in_table(cls, entries_max: int, occupied: int) -> Self:
        """Return the room in a table of ``entries_max``, of which others permanently use
        ``occupied``."""
        unresolved = int(entries_max * UNRESOLVED_SHARE) - occupied
        return cls(
            unresolved=max(UNRESOLVED_LEAST, min(UNRESOLVED_MOST, unresolved)),
            entries=int(entries_max * FILLED_SHARE) - occupied,
        )

    def left(self, unresolved: int, resolved: int) -> int:
        """Return how many more may be resolved, in addition to ``unresolved`` and ``resolved``."""
        allowed = max(UNRESOLVED_LEAST, self.entries - resolved)
        return max(0, min(self.unresolved, allowed) - unresolved)


ROOM_UNKNOWN = TableRoom()


class ArpWindow:
    """Returns the addresses to resolve next, and records which of them answered or failed."""

    def __init__(self, targets: Sequence[Target], room: TableRoom = ROOM_UNKNOWN) -> None:
        self._pending = deque(targets)
        self._total = len(targets)
        self._sent: dict[str, float] = {}  # in order of sending, so the oldest comes first
        self._unanswered: dict[str, Target] = {each.address: each for each in targets}
        self._room = room

    def next_to_ask(self, room: int) -> tuple[Target, ...]:
        """Return up to ``room`` addresses for which a slot is free."""
        resolved = self._total - len(self._unanswered)
        count = max(0, min(room, self._room.left(len(self._sent), resolved), len(self._pending)))
        return tuple(self._pending[index] for index in range(count))

    def mark_sent(self, now: float) -> None:
        """Record that a query for the first of ``next_to_ask`` was sent."""
        target = self._pending.popleft()
        if target.address in self._unanswered:
            self._sent[target.address] = now

    def resolved(self, address: str) -> Target | None:
        """Note the MAC of an address. Returns None if it is not a target or was known."""
        self._sent.pop(address, None)
        return self._unanswered.pop(address, None)

    def failed(self, address: str) -> None:
        """The kernel gave up on an address."""
        self._sent.pop(address, None)

    def expire(self, now: float) -> None:
        """Free the slots whose end the kernel did not report."""
        overdue = [address for address, then in self._sent.items() if now - then >= SLOT_S]
        for address in overdue:
            del self._sent[address]

    def settles_at(self) -> float | None:
        """Return the time after which no first answer is expected; None if targets are pending."""
        if self._pending:
            return None
        return next(reversed(self._sent.values())) + SETTLE_S if self._sent else 0.0

    def is_settled(self, now: float) -> bool:
        timestamp = self.settles_at()
        return timestamp is not None and now >= timestamp

    def done_count(self, now: float) -> int:
        """Return how many addresses are resolved, failed or past their settle time."""
        waiting = sum(1 for then in self._sent.values() if now < then + SETTLE_S)
        return self._total - len(self._pending) - waiting

    @property
    def unanswered(self) -> tuple[Target, ...]:
        """The addresses without a MAC so far, those not yet asked for included."""
        return tuple(self._unanswered.values())

    @property
    def unasked_count(self) -> int:
        return len(self._pending)
