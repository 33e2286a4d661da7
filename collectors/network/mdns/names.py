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
) -> dict[str, str]:
    """Query each host for its name as soon as the scan finds the host.

    Returns the names by address.

    Each host is queried only on its own link. Its own answer is preferred to names that other hosts
    give for its address. A host that does not answer is queried once more after a second (RFC 6762,
    section 5.2), unless the scan has ended by then. After the scan, the hosts found last still get
    ``LAST_WAIT_S`` to answer. Ends at ``deadline_s`` at the latest. Errors of the network or
    machine are not raised.
    """
    opened = [link for link in map(open_link, interfaces) if link is not None]
    queries = NameQueries([link for link in opened if link.sockets])
    try:
        queries.query_and_listen(discoveries, deadline_s, run)
    finally:
        for link in opened:
            link.close()
    return queries.names()


class NameQueries:
    """The addresses whose names are queried on ``links``, and the names that hosts have answered.

    ``_sent_at_s`` maps each address to the times of its queries. ``_addresses`` maps the reverse
    name of an address to the address. ``_own_names`` are the names that hosts gave for their own
    addresses. ``parsed_counts`` counts the packets of each host that were parsed.
    """

    def __init__(self, links: Sequence[LinkSockets]) -> None:
        self._links = links
        self._processed_count = 0
        self._sent_at_s: dict[str, list[float]] = {}
        self._addresses: dict[str, str] = {}
        self._own_names: dict[str, str] = {}
        self._names_from_others: dict[str, str] = {}
        self.parsed_counts: Counter[str] = Counter()

    def query_and_listen(self, discoveries: Discoveries, deadline_s: float, run: Run) -> None:
        """Query the hosts until the scan has ended and the last hosts have had time to answer.

        Returns at once if there are no links.
        """
        next_s = 0.0
        with selectors.DefaultSelector() as selector:
            for link in self._links:
                for socket in link.sockets:
                    selector.register(socket, selectors.EVENT_READ, link)
            while self._links and not run.cancelled and (now := time.monotonic()) < deadline_s:
                # Read `is_complete` before `hosts()`. In the other order, a host that is added
                # in between could be missed.
                is_complete = discoveries.is_complete
                self._add_addresses(discoveries.hosts())
                if now >= next_s and self._query(now, rounds=1 if is_complete else ROUNDS):
                    next_s = now + _BATCH_INTERVAL_S
                if is_complete and not self._is_waiting(now):
                    return
                for key, _ in selector.select(_TURN_S):
                    self._drain(key)

    def names(self) -> dict[str, str]:
        """Return the names by address."""
        own, others = self._own_names, self._names_from_others
        names = ((a, own.get(a) or others.get(a)) for a in self._sent_at_s)
        return {address: name for address, name in names if name}

    def add_address(self, address: str) -> None:
        """From now on, query the address and accept names for it."""
        self._sent_at_s[address] = []
        self._addresses[ipaddress.ip_address(address).reverse_pointer] = address

    def add_answer(self, source: str, packet: bytes) -> None:
        """Parse a packet and store the names in it.

        The packet is ignored if it may be from another link (``source`` is ""), if it has no
        reverse name, or if its sender has already given its own name or sent too many packets.
        """
        if not source or _REVERSE_DOMAIN not in packet.lower():
            return
        # Hosts that were not queried share one limit.
        sender = source if source in self._sent_at_s else ""
        if sender in self._own_names or self.parsed_counts[sender] >= PARSED_PER_HOST_MAX:
            return
        self.parsed_counts[sender] += 1
        for record in parse_response(packet):
            address = self._addresses.get(record.name.lower())
            if isinstance(record, PointerRecord) and address:
                names = self._own_names if address == source else self._names_from_others
                names.setdefault(address, clean_text(record.target, NAME_MAX))

    def _add_addresses(self, addresses: Sequence[str]) -> None:
        for address in addresses[self._processed_count : ADDRESSES_MAX]:
            self._processed_count += 1
            if any(link.is_neighbour((address, 0, 0, link.index)) for link in self._links):
                self.add_address(address)

    def _unnamed(self) -> dict[str, list[float]]:
        return {a: sent for a, sent in self._sent_at_s.items() if a not in self._own_names}

    def _is_waiting(self, now: float) -> bool:
        """Return whether any host was not queried yet, or still has time to answer."""
        unnamed = self._unnamed().values()
        return any(not sent_at_s or now < sent_at_s[-1] + LAST_WAIT_S for sent_at_s in unnamed)

    def _query(self, now: float, rounds: int) -> bool:
        """Query the hosts whose next query is due, each at most ``rounds`` times.

        Returns whether there were any.
        """
        due = [
            address
            for address, sent_at_s in self._unnamed().items()
            if not sent_at_s
            or (len(sent_at_s) < rounds and now >= sent_at_s[-1] + ROUND_INTERVAL_S)
        ]
        for address in due:
            self._sent_at_s[address].append(now)
        for link in self._links:
            near = (a for a in due if link.is_neighbour((a, 0, 0, link.index)))
            reverse_names = (ipaddress.ip_address(a).reverse_pointer for a in near)
            questions = (Question(tuple(name.split(".")), "PTR") for name in reverse_names)
            link.send(question_packets(questions))
        return bool(due)

    def _drain(self, key: selectors.SelectorKey) -> None:
        for _ in range(_DRAIN_MAX):
            received = key.data.receive(key.fileobj)
            if received is None:
                return
            self.add_answer(*received)
