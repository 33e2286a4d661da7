"""Checks which addresses answer ARP now. They get only the empty datagrams of `priming.py`.

An entry of the neighbour table that the kernel has not confirmed lately is no evidence that a host
is there. For such an entry, the kernel waits 5 s after the next packet, and then sends ARP requests
to the MAC of the entry (arp(7): delay_first_probe_time, ucast_solicit). macOS sends a request at
once if the host has sent nothing for about two minutes (net.link.ether.inet.arp_llreach_base).
"""

import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Protocol

from collectors.contract import Run
from collectors.shared.arp.pace import DATAGRAMS_PER_S, Pace
from collectors.shared.arp.priming import SETTLE_S, PrimingSockets
from collectors.shared.arp.proxy_arp import is_multicast_mac
from collectors.shared.arp.table_room import ROOM_UNKNOWN, TableRoom, read_table_room
from collectors.shared.host.neighbours import read_neighbour_table
from collectors.shared.linux.rtnetlink import LinkNeighbour
from collectors.shared.linux.rtnetlink_socket import read_neighbours

STALE_S: Final = 8.5
"""How long the kernel takes to find out that the host of an unconfirmed entry is gone."""
USUAL_S: Final = 1.2
"""The time in which a host answers the first or second ARP request."""
STALE_USUAL_S: Final = 5.6
"""The time in which the kernel confirms an unconfirmed entry if its host is there."""
RETRY_AFTER_S: Final = 3.2
"""After this time, a new datagram to an address that did not answer makes the kernel send new
requests."""
STATELESS_S: Final = 1.0
"""How long to wait for an answer if the table does not show which entries are confirmed."""
POLL_S: Final = 0.05
_SLOW_POLL_S: Final = 0.5


class ArpNetwork(Protocol):
    """What `Resolver` needs of the system: the neighbour table, priming and a clock.

    ``has_states``: the table shows which entries are confirmed. ``now`` returns seconds. ``wait``
    pauses before the table is read again.
    """

    @property
    def has_states(self) -> bool: ...

    def now(self) -> float: ...

    def table(self) -> Sequence[LinkNeighbour]: ...

    def prime(self, address: str) -> bool:
        """Make the kernel resolve an address. Returns False if the send queues are full."""

    def wait(self) -> None: ...


class SystemArpNetwork(PrimingSockets):
    """The network of this machine. The constructor raises OSError."""

    has_states = True

    def now(self) -> float:
        return time.monotonic()

    def table(self) -> Sequence[LinkNeighbour]:
        if sys.platform == "linux" and self.has_states:
            try:
                return read_neighbours()
            except OSError:  # a sandbox denies rtnetlink, and /proc/net/arp has no states
                self.has_states = False
        return read_neighbour_table()

    def wait(self) -> None:
        # On macOS, a program must be run to read the table.
        time.sleep(POLL_S if sys.platform != "darwin" else _SLOW_POLL_S)


@dataclass(slots=True)
class _Query:
    """An address that was not resolved yet.

    ``primed_s`` is the time at which the kernel began to resolve it, or None. ``was_stale``: it had
    an unconfirmed entry then. ``tries`` is how often it may be tried from now on.
    """

    tries: int = 1
    primed_s: float | None = None
    was_stale: bool = False


class Resolver:
    """Resolves addresses. The caller adds addresses and calls `step` until it has what it needs.

    ``answers`` maps the addresses that answered to their MACs. ``silent`` are the addresses that
    did not answer. An address may answer after it was silent, if another device has taken it over.
    So an address may be silent and still be pending.
    """

    def __init__(self, network: ArpNetwork, room: TableRoom = ROOM_UNKNOWN) -> None:
        self.answers: dict[str, str] = {}
        self.silent: set[str] = set()
        self._network = network
        self._room = room
        self._pace = Pace(DATAGRAMS_PER_S)
        self._queries: dict[str, _Query] = {}

    def add(self, addresses: Iterable[str], tries: int = 1) -> None:
        """Resolve further addresses. Each one that does not answer is tried ``tries`` times."""
        for address in addresses:
            if not self.is_known(address):
                self._queries.setdefault(address, _Query(tries))

    def is_pending(self, address: str) -> bool:
        return address in self._queries

    def is_known(self, address: str) -> bool:
        """Return whether an address has answered, or did not answer in time."""
        return address in self.answers or address in self.silent

    @property
    def is_done(self) -> bool:
        return not self._queries

    def is_late(self, address: str) -> bool:
        """Return whether an address did not answer in the time that an answer usually takes."""
        query = self._queries.get(address)
        if query is None or query.primed_s is None:
            return False
        usual_s = STALE_USUAL_S if query.was_stale else USUAL_S
        return self._network.now() - query.primed_s >= usual_s

    def step(self) -> None:
        """Read the table once, and make the kernel resolve the next addresses."""
        now = self._network.now()
        table = {neighbour.address: neighbour for neighbour in self._network.table()}
        for address, query in tuple(self._queries.items()):
            self._check(address, query, table.get(address), now)
        room = self._room.left(self._unresolved, len(self.answers))
        for address, query in tuple(self._queries.items()):
            if query.primed_s is None and room > 0:
                if not (self._pace.available(now) and self._network.prime(address)):
                    break
                self._pace.spend(1)
                room -= 1
                query.primed_s = now
                entry = table.get(address)
                query.was_stale = entry is not None and entry.mac_address is not None

    @property
    def _unresolved(self) -> int:
        """The number of addresses for which the kernel now sends ARP requests to all hosts."""
        return sum(q.primed_s is not None and not q.was_stale for q in self._queries.values())

    def _check(self, address: str, query: _Query, entry: LinkNeighbour | None, now: float) -> None:
        mac = entry.mac_address if entry else None
        has_host_mac = bool(mac) and not is_multicast_mac(mac or "")
        if entry and mac and has_host_mac and self._is_confirmed(query, entry, now):
            self.answers[address] = mac
            self.silent.discard(address)
            del self._queries[address]
        elif query.primed_s is None:
            return
        elif query.was_stale and not has_host_mac:
            # The device of the unconfirmed entry is gone. Another one may have taken its address.
            self.silent.add(address)
            query.primed_s, query.was_stale = None, False
        elif now - query.primed_s >= (STALE_S if query.was_stale else SETTLE_S):
            self._give_up(address, query, now)
        elif query.was_stale and now - query.primed_s >= STALE_USUAL_S:
            self.silent.add(address)

    def _give_up(self, address: str, query: _Query, now: float) -> None:
        """Try an address again later, or give it up."""
        self.silent.add(address)
        if query.tries <= 1:
            del self._queries[address]
        elif query.primed_s is not None and now - query.primed_s >= RETRY_AFTER_S:
            query.tries -= 1
            query.primed_s = None

    def _is_confirmed(self, query: _Query, entry: LinkNeighbour, now: float) -> bool:
        if self._network.has_states:
            return entry.state == "reachable"
        return query.primed_s is not None and now - query.primed_s >= STATELESS_S


def resolve_addresses(addresses: Iterable[str], deadline_s: float, run: Run) -> Resolver:
    """Resolve addresses until all are done, ``deadline_s`` (monotonic) has passed, or the run is
    cancelled.

    Raises OSError if no socket can be opened, or the system denies the neighbour table.
    """
    network = SystemArpNetwork()
    with closing(network):
        resolver = Resolver(network, read_table_room())
        resolver.add(addresses)
        while not (resolver.is_done or run.cancelled or network.now() >= deadline_s):
            resolver.step()
            if not resolver.is_done:
                network.wait()
        return resolver
