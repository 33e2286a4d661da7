"""The names hosts give for their own addresses: reverse mDNS questions (RFC 6762, section 4)."""

import ipaddress
import selectors
import time
from collections import Counter
from collections.abc import Callable, Sequence

from collectors.contract import Interface, Run
from collectors.network.mdns.records import NAME_MAX
from collectors.network.mdns.sockets import LinkSockets, open_link
from collectors.network.mdns.wire import (
    PointerRecord,
    Question,
    parse_response,
    question_packets,
)
from collectors.network.observations import HostName
from collectors.shared.text import clean_text

ADDRESSES_MAX = 512
ROUND_INTERVAL_S = 1.0
LAST_WAIT_S = 0.4
ROUNDS = 2
_TURN_S = 0.05
_DRAIN_MAX = 2048
READ_PER_HOST_MAX = 32

OpenLink = Callable[[Interface], LinkSockets | None]


def ask_names(
    interfaces: Sequence[Interface],
    addresses: Sequence[str],
    deadline_s: float,
    run: Run,
    *,
    open_link: OpenLink = open_link,
) -> tuple[HostName, ...]:
    """Return the names of those addresses whose hosts answer, each asked on its own link only.

    What a host says of itself counts more than what others say of it, however early or often.
    Ends when all have answered, after two rounds, or at ``deadline_s``. Never raises for what
    network or machine do.
    """
    wanted = {
        ipaddress.ip_address(each).reverse_pointer: each for each in addresses[:ADDRESSES_MAX]
    }
    if not wanted:
        return ()
    opened = [link for link in (open_link(each) for each in interfaces) if link is not None]
    heard = Heard(wanted)
    try:
        _listen([link for link in opened if link.sockets], wanted, heard, deadline_s, run)
    finally:
        for link in opened:
            link.close()
    found = ((address, heard.name(name)) for name, address in wanted.items())
    return tuple(HostName(address, name) for address, name in found if name)


def _listen(
    links: Sequence[LinkSockets],
    wanted: dict[str, str],
    heard: "Heard",
    deadline_s: float,
    run: Run,
) -> None:
    if not links:
        return
    rounds, next_round_s = 0, time.monotonic()
    with selectors.DefaultSelector() as selector:
        for link in links:
            for each in link.sockets:
                selector.register(each, selectors.EVENT_READ, link)
        while not run.cancelled and not wanted.keys() <= heard.names.keys():
            now = time.monotonic()
            if now >= deadline_s or (now >= next_round_s and rounds >= ROUNDS):
                return
            if now >= next_round_s:
                rounds += 1
                next_round_s = now + (ROUND_INTERVAL_S if rounds < ROUNDS else LAST_WAIT_S)
                _ask(links, wanted, heard)
            for key, _ in selector.select(min(_TURN_S, max(0.0, next_round_s - now))):
                _drain(key, heard)


def _ask(links: Sequence[LinkSockets], wanted: dict[str, str], heard: "Heard") -> None:
    for link in links:
        questions = (
            Question(tuple(name.split(".")), "PTR")
            for name, address in wanted.items()
            if name not in heard.names and link.is_neighbour((address, 0, 0, link.index))
        )
        for packet in question_packets(questions):
            link.send(packet)


def _drain(key: selectors.SelectorKey, heard: "Heard") -> None:
    for _ in range(_DRAIN_MAX):
        received = key.data.receive(key.fileobj)
        if received is None:
            return
        heard.add(*received)


class Heard:
    """The names told so far; ``names`` has those that hosts told themselves, by reverse name."""

    def __init__(self, wanted: dict[str, str]) -> None:
        self.names: dict[str, str] = {}
        self._hearsay: dict[str, str] = {}
        self._wanted = wanted
        self._reverse = {address: name for name, address in wanted.items()}
        self._read: Counter[str] = Counter()

    @property
    def read(self) -> int:
        """How many packets were understood."""
        return self._read.total()

    def name(self, reverse: str) -> str | None:
        return self.names.get(reverse) or self._hearsay.get(reverse)

    def add(self, source: str, packet: bytes) -> None:
        """Take a packet in, but none from beyond the link. A flood is read to its bound only."""
        if not source:
            return
        own = self._reverse.get(source)
        reader = source if own else ""  # those who speak for others share what is read of them
        if own in self.names or self._read[reader] >= READ_PER_HOST_MAX:
            return
        self._read[reader] += 1
        for record in parse_response(packet):
            name = record.name.lower()
            if isinstance(record, PointerRecord) and name in self._wanted:
                names = self.names if name == own else self._hearsay
                names.setdefault(name, clean_text(record.target, NAME_MAX))
