"""How many addresses may be resolved by ARP at the same time.

For an address without a host, the kernel sends three ARP requests, one a second. During these 3 s
the address has an entry in the neighbour table, and this entry cannot be removed. The whole
machine, with its containers, has one table. If it is full, hosts vanish and the machine's own
traffic fails. So the scan fills only a share of the table.

Two thresholds of the table matter here (arp(7)). At gc_thresh3, 1024 by default, the kernel refuses
new entries. Above gc_thresh2, 512 by default, a new entry makes the kernel remove others, at most
every 5 s. It removes failed entries, which the scan caused, and entries that were not confirmed for
5 s. The next packet to a removed neighbour costs one ARP request. Failed entries stay in the table
until the kernel removes them in this way, or in its cleanup every 15 s. So a scan that tries more
than gc_thresh2 addresses within 15 s exceeds this threshold, no matter how many of them it tries at
once.
"""

import sys
from dataclasses import dataclass
from typing import Self

from collectors.shared.linux.rtnetlink_socket import read_neighbour_table_size, read_neighbours

UNRESOLVED_DEFAULT = 480
"""Maximum number of unresolved addresses at once, if the size of the table is not known."""
UNRESOLVED_MAX = 640
"""Maximum number of unresolved addresses at once, even in a large table. Each address causes one
broadcast a second on the link."""
UNRESOLVED_MIN = 16
"""How many unresolved addresses the scan may have at once even if the table is nearly full. So the
scan still ends."""
UNRESOLVED_SHARE = 0.6
"""The share of the table that unresolved addresses and the entries of other programs may fill."""
FILLED_SHARE = 0.85
"""The share of the table that three kinds of entries may fill together: unresolved addresses,
entries of other programs, and addresses that the scan has resolved. A resolved address stays in the
table for half a minute."""


@dataclass(frozen=True, slots=True)
class TableRoom:
    """How much of the neighbour table the scan may fill.

    ``unresolved`` is the maximum number of unresolved addresses at once. ``entries`` is the maximum
    number of entries of unresolved and resolved addresses together.
    """

    unresolved: int = UNRESOLVED_DEFAULT
    entries: int = sys.maxsize

    @classmethod
    def in_table(cls, entries_max: int, occupied: int) -> Self:
        """Return the room in a table of at most ``entries_max`` entries. ``occupied`` of them
        belong to other programs and cannot be removed."""
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


def read_table_room() -> TableRoom:
    """Return the room in the neighbour table, or `ROOM_UNKNOWN` if its size cannot be read."""
    try:
        size, table = read_neighbour_table_size(), read_neighbours()
    except OSError:
        return ROOM_UNKNOWN
    if size is None:
        return ROOM_UNKNOWN
    # The kernel removes failed and stale entries when it needs room for new ones.
    spare = sum(entry.state in ("failed", "stale") for entry in table)
    return TableRoom.in_table(size.entries_max, max(0, size.entries - spare))
