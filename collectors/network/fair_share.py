"""Shares limited resources fairly, for example between mDNS announcers. No I/O."""

from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterable
from typing import TypeVar

Item = TypeVar("Item")


class Pool:
    """A limited amount that several holders share.

    A holder may take more only if its part is then not larger than the amount that remains free. So
    one greedy holder gets at most half of the amount, and two that take in turns get at most a
    third each. A new holder can always take half of what remains free. Network switches use this
    method as "dynamic thresholds" (Choudhury and Hahne, "Dynamic queue length thresholds for
    shared-memory packet switches", IEEE/ACM ToN 6 (2), 1998).
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._left = size
        self._held: Counter[str] = Counter()

    @property
    def used(self) -> int:
        return self._size - self._left

    def take(self, holder: str, amount: int) -> bool:
        """Take a part of the free amount. Returns False if the holder may not take so much."""
        held_amount = self._held[holder] + amount
        if held_amount > self._left - amount:
            return False
        self._held[holder] = held_amount
        self._left -= amount
        return True

    def give_back(self, holder: str, amount: int) -> None:
        self._held[holder] -= amount
        self._left += amount

    def hand_over(self, holder: str, new_holder: str, amount: int | None = None) -> None:
        """Move ``amount`` (None: all) to ``new_holder``, because both holders are one device."""
        moved_amount = self._held[holder] if amount is None else amount
        self._held[holder] -= moved_amount
        self._held[new_holder] += moved_amount

    def refill(self) -> None:
        """Make the whole amount available again. The amounts of the holders stay as they are, so
        that a holder which took much can take less of the new amount."""
        self._left = self._size


class FairQueue:
    """A queue of packets that returns one packet of each owner in turn.

    The owner of a packet is an announcer, and its source is the address that sent it. The queue is
    limited in packets and in bytes.
    """

    def __init__(self, packets_max: int, bytes_max: int) -> None:
        self._packets_max = packets_max
        self._bytes_max = bytes_max
        self._packets: dict[str, deque[tuple[str, bytes]]] = {}
        self._bytes: Counter[str] = Counter()
        self._count = 0
        self._total_bytes = 0

    def __len__(self) -> int:
        return self._count

    def put(self, owner: str, source: str, packet: bytes) -> list[str]:
        """Add a packet and its source.

        While the queue is too long, the newest packet of the owner with the most bytes in the queue
        is dropped. Returns the sources of the dropped packets.
        """
        self._packets.setdefault(owner, deque()).append((source, packet))
        self._bytes[owner] += len(packet)
        self._count += 1
        self._total_bytes += len(packet)
        dropped_sources = []
        while self._count > self._packets_max or self._total_bytes > self._bytes_max:
            largest_owner = max(self._packets, key=lambda queued_owner: self._bytes[queued_owner])
            removed = self._remove(largest_owner, self._packets[largest_owner].pop())
            dropped_sources.append(removed[0])
        return dropped_sources

    def take(self) -> tuple[str, bytes] | None:
        """Return the next packet and its source; None if there is none."""
        if not self._packets:
            return None
        owner, packets = next(iter(self._packets.items()))
        packet = self._remove(owner, packets.popleft())
        if packets:
            self._packets[owner] = self._packets.pop(owner)  # the owner moves to the end
        return packet

    def _remove(self, owner: str, packet: tuple[str, bytes]) -> tuple[str, bytes]:
        self._count -= 1
        self._total_bytes -= len(packet[1])
        self._bytes[owner] -= len(packet[1])
        if not self._packets[owner]:
            del self._packets[owner], self._bytes[owner]
        return packet


def in_turns(owner_items: Iterable[tuple[Hashable, Item]]) -> list[Item]:
    """Return the first item of each owner, then the second item of each owner, and so on."""
    turns: defaultdict[int, list[Item]] = defaultdict(list)
    counts: Counter[Hashable] = Counter()
    for owner, item in owner_items:
        turns[counts[owner]].append(item)
        counts[owner] += 1
    return [item for turn in sorted(turns) for item in turns[turn]]
