"""The names hosts give for their own addresses: reverse mDNS questions (RFC 6762, section 4)."""

import ipaddress
import selectors
import time
from collections.abc import Callable, Sequence

from collectors.contract import Interface, Run
from collectors.network.evidence import HostName
from collectors.network.mdns_records import Allowance, RecordBook
from collectors.network.mdns_sockets import Link, open_link
from collectors.network.mdns_wire import Question, parse_response, question_packets

ADDRESSES_MAX = 512
ROUND_INTERVAL_S = 1.0
LAST_WAIT_S = 0.4
ROUNDS = 2
_TURN_S = 0.05
_DRAIN_MAX = 256

OpenLink = Callable[[Interface], Link | None]


def ask_names(
    interfaces: Sequence[Interface],
    addresses: Sequence[str],
    deadline_s: float,
    run: Run,
    *,
    open_link: OpenLink = open_link,
) -> tuple[HostName, ...]:
    """Return the names of those addresses whose hosts answer, each asked on its own link only.

    Ends when all have answered, after two rounds, or at ``deadline_s``. Never raises for what
    network or machine do.
    """
    wanted = {
        ipaddress.ip_address(each).reverse_pointer: each for each in addresses[:ADDRESSES_MAX]
    }
    if not wanted:
        return ()
    opened = [link for link in (open_link(each) for each in interfaces) if link is not None]
    book = RecordBook("", Allowance(ADDRESSES_MAX))
    try:
        _listen([link for link in opened if link.sockets], wanted, book, deadline_s, run)
    finally:
        for link in opened:
            link.close()
    found = ((address, book.reverse_names.get(name)) for name, address in wanted.items())
    return tuple(HostName(address, name) for address, name in found if name)


def _listen(
    links: Sequence[Link], wanted: dict[str, str], book: RecordBook, deadline_s: float, run: Run
) -> None:
    if not links:
        return
    rounds, next_round_s = 0, time.monotonic()
    with selectors.DefaultSelector() as selector:
        for link in links:
            for each in link.sockets:
                selector.register(each, selectors.EVENT_READ, link)
        while not run.cancelled and not wanted.keys() <= book.reverse_names.keys():
            now = time.monotonic()
            if now >= deadline_s or (now >= next_round_s and rounds >= ROUNDS):
                return
            if now >= next_round_s:
                rounds += 1
                next_round_s = now + (ROUND_INTERVAL_S if rounds < ROUNDS else LAST_WAIT_S)
                _ask(links, wanted, book)
            for key, _ in selector.select(min(_TURN_S, max(0.0, next_round_s - now))):
                _drain(key, book)


def _ask(links: Sequence[Link], wanted: dict[str, str], book: RecordBook) -> None:
    for link in links:
        questions = (
            Question(tuple(name.split(".")), "PTR")
            for name, address in wanted.items()
            if name not in book.reverse_names and link.is_neighbour((address, 0, 0, link.index))
        )
        for packet in question_packets(questions):
            link.send(packet)


def _drain(key: selectors.SelectorKey, book: RecordBook) -> None:
    for _ in range(_DRAIN_MAX):
        packet = key.data.receive(key.fileobj)
        if packet is None:
            return
        if packet:
            book.add(parse_response(packet))
