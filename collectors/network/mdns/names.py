"""Queries hosts for their names by reverse mDNS questions (RFC 6762, section 4)."""

import ipaddress
import selectors
import time
from collections import Counter
from collections.abc import Callable, Sequence

from collectors.contract import Interface, Run
from collectors.network.discoveries import Discoveries
from collectors.network.mdns.records import NAME_MAX
from collectors.network.mdns.sockets import LinkSockets, open_link
from collectors.network.mdns.wire import PointerRecord, Question, parse_response, question_packets
from collectors.network.observations import HostName
from collectors.shared.text import clean_text

ADDRESSES_MAX = 512
ROUND_INTERVAL_S = 1.0
LAST_WAIT_S = 0.4
ROUNDS = 2
_TURN_S = 0.02  # the longest wait for packets in one turn of the loop
_BATCH_INTERVAL_S = 0.04
"""Time between packets, so that one packet can have the questions for many hosts."""
_DRAIN_MAX = 2048  # the most packets that are read from a socket at once
_REVERSE_DOMAIN = b"\x04arpa"
PARSED_PER_HOST_MAX = 32
"""The most packets that are parsed from one host."""

OpenLink = Callable[[Interface], LinkSockets | None]


def query_names(
    interfaces: Sequence[Interface],
    discoveries: Discoveries,
    deadline_s: float,
    run: Run,
    *,
    open_link: OpenLink = open_link,
) -> tuple[HostName, ...]:
    """Query each host for its name as soon as the scan finds the host. Return the names.

    Each host is queried only on its own link. Its own answer is preferred to names that other hosts
    give for its address. A host that does not answer is queried once more after a second (RFC 6762,
    section 5.2), unless the scan has ended by then. After the scan, the hosts found last still get
    ``LAST_WAIT_S`` to answer. Ends at ``deadline_s`` at the latest. Errors of the network or
    machine are not raised.
    """
    opened = [
        link for link in (open_link(interface) for interface in interfaces) if link is not None
    ]
    links = [link for link in opened if link.sockets]
    names = _Names(links)
    try:
        if links:
            names.query_and_listen(discoveries, deadline_s, run)
    finally:
        for link in opened:
            link.close()
    return names.host_names()


class _Names:
    """The addresses whose names are queried.

    For each address, the number of queries and the time of the last query are stored.
    """

    def __init__(self, links: Sequence[LinkSockets]) -> None:
        self._links = links
        self._answers = NameAnswers()
        self._processed_count = 0
        self._tries: dict[str, int] = {}
        self._sent_at_s: dict[str, float] = {}

    def query_and_listen(self, discoveries: Discoveries, deadline_s: float, run: Run) -> None:
        next_s = 0.0
        with selectors.DefaultSelector() as selector:
            for link in self._links:
                for socket in link.sockets:
                    selector.register(socket, selectors.EVENT_READ, link)
            while not run.cancelled and (now := time.monotonic()) < deadline_s:
                # Read `is_complete` before `hosts()`. In the other order, a host that is added
                # in between could be missed.
                is_complete = discoveries.is_complete
                self._add_addresses(discoveries.hosts())
                if now >= next_s and self._query(now, rounds=1 if is_complete else ROUNDS):
                    next_s = now + _BATCH_INTERVAL_S
                if is_complete and not self._is_waiting(now):
                    return
                for key, _ in selector.select(_TURN_S):
                    _drain(key, self._answers)

    def host_names(self) -> tuple[HostName, ...]:
        names = ((a, self._answers.name(reverse)) for reverse, a in self._answers.addresses.items())
        return tuple(HostName(address, name) for address, name in names if name)

    def _add_addresses(self, addresses: Sequence[str]) -> None:
        for address in addresses[self._processed_count : ADDRESSES_MAX]:
            self._processed_count += 1
            if any(link.is_neighbour((address, 0, 0, link.index)) for link in self._links):
                self._tries[self._answers.add_address(address)] = 0

    def _is_waiting(self, now: float) -> bool:
        """Return whether any host was not queried yet, or still has time to answer."""
        return any(
            not tries or now < self._sent_at_s[name] + LAST_WAIT_S
            for name, tries in self._tries.items()
            if name not in self._answers.names
        )

    def _query(self, now: float, rounds: int) -> bool:
        """Query the hosts whose next query is due, each at most ``rounds`` times.

        Returns whether there were any.
        """
        due = [
            name
            for name, tries in self._tries.items()
            if name not in self._answers.names
            and (not tries or (tries < rounds and now >= self._sent_at_s[name] + ROUND_INTERVAL_S))
        ]
        for name in due:
            self._tries[name] += 1
            self._sent_at_s[name] = now
        for link in self._links:
            questions = (
                Question(tuple(name.split(".")), "PTR")
                for name in due
                if link.is_neighbour((self._answers.addresses[name], 0, 0, link.index))
            )
            link.send(question_packets(questions))
        return bool(due)


def _drain(key: selectors.SelectorKey, answers: "NameAnswers") -> None:
    for _ in range(_DRAIN_MAX):
        received = key.data.receive(key.fileobj)
        if received is None:
            return
        answers.add(*received)


class NameAnswers:
    """The names that hosts have answered so far.

    ``names`` maps the reverse name of an address to the name that the host itself gave.
    ``addresses`` maps the reverse name to the address.
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.addresses: dict[str, str] = {}
        self._names_from_others: dict[str, str] = {}
        self._reverse: dict[str, str] = {}
        self._parsed_counts: Counter[str] = Counter()

    def add_address(self, address: str) -> str:
        """Accept names for an address from now on. Returns the address's reverse name."""
        reverse = ipaddress.ip_address(address).reverse_pointer
        self.addresses[reverse] = address
        self._reverse[address] = reverse
        return reverse

    @property
    def parsed_count(self) -> int:
        """The number of packets that were parsed."""
        return self._parsed_counts.total()

    def name(self, reverse: str) -> str | None:
        return self.names.get(reverse) or self._names_from_others.get(reverse)

    def add(self, source: str, packet: bytes) -> None:
        """Parse a packet and store the names in it.

        The packet is ignored if it may be from another link (``source`` is ""), if it has no
        reverse name, or if its sender has already given its own name or sent too many packets.
        """
        if not source or _REVERSE_DOMAIN not in packet.lower():
            return
        reverse_name = self._reverse.get(source)
        sender = source if reverse_name else ""  # hosts that were not queried share one limit
        if reverse_name in self.names or self._parsed_counts[sender] >= PARSED_PER_HOST_MAX:
            return
        self._parsed_counts[sender] += 1
        for record in parse_response(packet):
            name = record.name.lower()
            if isinstance(record, PointerRecord) and name in self.addresses:
                names = self.names if name == reverse_name else self._names_from_others
                names.setdefault(name, clean_text(record.target, NAME_MAX))
