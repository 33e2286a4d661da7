"""How strangers share what is bounded: whoever takes much leaves enough for others. Pure."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

Item = TypeVar("Item")


class Pool:
    """An amount of which each holder may hold as much as is left, and no more.

    One greedy holder ends at a half, two at a third each; a newcomer always finds as much free as
    the greediest holds. (Known from switches as dynamic thresholds: Choudhury and Hahne, "Dynamic
    queue length thresholds for shared-memory packet switches", IEEE/ACM ToN 6 (2), 1998.)
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._left = size
        self._held: dict[str, int] = {}

    def take(self, holder: str, amount: int) -> bool:
        held = self._held.get(holder, 0) + amount
        if held > self._left - amount:
            return False
        self._held[holder] = held
        self._left -= amount
        return True

    def give_back(self, holder: str, amount: int) -> None:
        self._held[holder] = self._held.get(holder, 0) - amount
        self._left += amount

    def hand_over(self, holder: str, other: str) -> None:
        """What ``holder`` held is held by ``other``: both turned out to be one."""
        if held := self._held.pop(holder, 0):
            self._held[other] = self._held.get(other, 0) + held

    def refill(self) -> None:
        """Give everybody a new chance; what each has had still counts against it."""
        self._left = self._size


def in_turns(owned: Iterable[tuple[Hashable, Item]]) -> list[Item]:
    """Return the items so that each owner's first comes before anybody's second, and so on."""
    counts: dict[Hashable, int] = {}
    ranked: list[tuple[int, int, Item]] = []
    for number, (owner, item) in enumerate(owned):
        turn = counts.get(owner, 0)
        counts[owner] = turn + 1
        ranked.append((turn, number, item))
    ranked.sort(key=lambda each: each[:2])
    return [item for _, _, item in ranked]
