"""A simulated LAN with its own clock. It implements `ScanNetwork`, through which the sweep uses the
network.
"""

import heapq
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from collectors.contract import Facts
from collectors.network.scan.sockets import ConnectResult, NetworkEvents
from collectors.shared.addresses import PRINT_PORTS
from collectors.shared.linux.rtnetlink import LinkNeighbour

_TURN_S = 1e-5  # `wait` advances the clock by at least this time, unless an event is due sooner


@dataclass(slots=True)
class SimulatedHost:
    """A host that does not answer the first ``lost_arp`` ARP requests, and the first ``lost_syns``
    SYNs to each port.

    It never answers SYNs to the ports ``filtered``. With ``is_mute``, it answers no SYN at all.
    ``syns`` counts the SYNs to each port that is not filtered; a mute host counts none. If a test
    starts the count of a port at a higher number than 0, the host loses fewer SYNs to this port.
    """

    mac: str
    open_ports: frozenset[int] = frozenset()
    filtered: frozenset[int] = frozenset()
    is_mute: bool = False
    round_trip_s: float = 0.01
    lost_arp: int = 0
    lost_syns: int = 0
    syns: dict[int, int] = field(default_factory=dict)


class SimulatedLan:
    """The hosts of a LAN, and the kernel of this machine.

    The kernel sends three ARP requests for an address, one second apart. If no answer arrives, it
    then marks the address as failed in its neighbour table.

    Attributes:
        primed: The addresses for which the sweep has called `prime`.
        taken_connections: The connections that the sweep took for queries.
        most_unresolved: The largest number of unresolved addresses at any time.
        most_sockets: The largest number of connections to each address at any time.
        most_printing: The largest number of connections to the print ports of each address at any
            time. It includes the taken connections.
    """

    def __init__(
        self, hosts: dict[str, SimulatedHost], neighbours: Sequence[LinkNeighbour] = ()
    ) -> None:
        self.hosts = hosts
        self.primed: list[str] = []
        self.most_unresolved = 0
        self.most_sockets: dict[str, int] = {}
        self.last_connect: dict[tuple[str, int], float] = {}
        self.connects: Counter[tuple[str, int]] = Counter()
        self.most_printing: dict[str, int] = {}
        self._neighbours = neighbours
        self._now = 100.0
        self._events: list[tuple[float, int, LinkNeighbour | ConnectResult]] = []
        self._event_count = 0
        self.taken_connections: list[tuple[str, int]] = []
        self._unresolved: set[str] = set()
        self._open: dict[tuple[str, int], int] = {}

    def now(self) -> float:
        return self._now

    def known_neighbours(self) -> Sequence[LinkNeighbour]:
        return self._neighbours

    def prime(self, address: str) -> bool:
        self.primed.append(address)
        self._unresolved.add(address)
        self.most_unresolved = max(self.most_unresolved, len(self._unresolved))
        host = self.hosts.get(address)
        if host is None or host.lost_arp > 2:
            self.schedule(3.07, LinkNeighbour(2, address, None, "failed"))
        else:
            answer = LinkNeighbour(2, address, host.mac, "reachable")
            self.schedule(host.lost_arp + host.round_trip_s, answer)
        return True

    def connect(self, address: str, port: int) -> bool:
        key = (address, port)
        self._open[key] = self._open.get(key, 0) + 1
        self.last_connect[key] = self._now
        self.connects[key] += 1
        socket_count = sum(n for (other, _), n in self._open.items() if other == address)
        self.most_sockets[address] = max(socket_count, self.most_sockets.get(address, 0))
        contacts = (*self._open, *self.taken_connections)
        printing = sum(
            other == address and other_port in PRINT_PORTS for other, other_port in contacts
        )
        self.most_printing[address] = max(printing, self.most_printing.get(address, 0))
        host = self.hosts.get(address)
        if host is None or host.is_mute or port in host.filtered:
            return True
        host.syns[port] = host.syns.get(port, 0) + 1
        if host.syns[port] > host.lost_syns:
            is_open = port in host.open_ports
            latency_ms = host.round_trip_s * 1000 if is_open else None
            outcome = ConnectResult(address, port, "open" if is_open else "refused", latency_ms)
            self.schedule(host.round_trip_s, outcome)
        return True

    def take(self, address: str, port: int) -> socket.socket | None:
        self.taken_connections.append((address, port))
        return socket.socket()

    def drop(self, address: str, port: int) -> None:
        self._open.pop((address, port), None)

    def wait(self, timeout_s: float) -> NetworkEvents:
        end = self._now + max(timeout_s, _TURN_S)
        if self._events and self._events[0][0] <= end:
            end = max(self._now, self._events[0][0])
        self._now = end
        neighbours: list[LinkNeighbour] = []
        contacts: list[ConnectResult] = []
        while self._events and self._events[0][0] <= self._now:
            event = heapq.heappop(self._events)[2]
            if isinstance(event, LinkNeighbour):
                self._unresolved.discard(event.address)
                neighbours.append(event)
            elif (event.address, event.port) in self._open:
                contacts.append(event)
        return NetworkEvents(tuple(neighbours), tuple(contacts))

    @property
    def open_sockets(self) -> int:
        return sum(self._open.values())

    def schedule(self, delay_s: float, event: LinkNeighbour | ConnectResult) -> None:
        """Make `wait` return ``event`` after ``delay_s`` seconds."""
        self._event_count += 1
        heapq.heappush(self._events, (self._now + delay_s, self._event_count, event))


@dataclass
class SimulatedRun:
    """A `Run` that is cancelled as soon as ``is_cancelled`` returns True.

    It passes progress to ``on_progress``: the number of addresses that are done, and of all.
    """

    is_cancelled: Callable[[], bool] = lambda: False
    on_progress: Callable[[int, int], object] = lambda _done, _total: None

    @property
    def cancelled(self) -> bool:
        return self.is_cancelled()

    def progress(self, step: str, done: int, total: int | None = None) -> None:
        self.on_progress(done, total or 0)

    def checkpoint(self, facts: Facts) -> None: ...

    def on_cancel(self, wake: Callable[[], None]) -> None: ...
