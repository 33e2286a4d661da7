"""What the announcers of one interface told, kept apart by the address it came from.

Nobody can change or remove what another told, whatever names are in the packets: a record counts
for the address that sent it, a goodbye or a cache flush for nobody. Only when the services are
read are the records joined, each service from what its own announcer told as far as that goes.

Who an announcer is, its MAC tells as soon as the neighbour table has it. Addresses for which
nobody answers ARP count as one announcer all together: whoever makes up addresses is among them.
"""

import ipaddress
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from collectors.network.fair_share import Pool, in_turns
from collectors.network.host.rtnetlink import LinkNeighbour
from collectors.network.mdns.records import (
    ADDRESSES_PER_HOST_MAX,
    NAME_MAX,
    TYPES_MAX,
    Quota,
    RecordBook,
    parse_txt,
)
from collectors.network.mdns.wire import Question, Record
from collectors.network.observations import MdnsService
from collectors.shared.addresses import Network, is_beyond
from collectors.shared.text import clean_text

SOURCES_MAX = 2048
"""Addresses of one interface that are listened to."""
UNREAD_MAX = 4096
UNREAD_MAX_BYTES = 6 * 2**20
READ_MAX_BYTES = 16 * 2**20
"""Packets understood between two rounds of questions; one announcer alone may have half of it."""
QUESTIONS_MAX = 8000
LACKING_MAX = 128
NOBODY = "addresses at which nobody answers ARP"

_PACKET_BYTES = 300  # what understanding a packet costs beside its length


@dataclass(slots=True)
class _Mail:
    """Packets of one announcer that are not yet understood, with their senders."""

    packets: deque[tuple[str, bytes]] = field(default_factory=deque)
    size_bytes: int = 0


class LinkRecords:
    """The records of one interface. Everything in it is bounded and shared fairly.

    ``networks`` are those of the interface: for an address in none of them nobody can answer ARP.
    """

    def __init__(self, interface_name: str, quota: Quota, networks: Sequence[Network] = ()) -> None:
        self.interface_name = interface_name
        self.types: dict[str, None] = {}
        self.unread_of: dict[str, int] = {}
        self.unheard = 0
        self._quota = quota
        self._networks = networks
        self._books: dict[str, RecordBook] = {}
        self._macs: dict[str, str] = {}
        self._mail: dict[str, _Mail] = {}
        self._unread = self._unread_bytes = 0
        self._reading = Pool(READ_MAX_BYTES)
        self._questions = Pool(QUESTIONS_MAX)
        self._types = Pool(2 * TYPES_MAX)
        self._askers: dict[Question, str] = {}

    def __len__(self) -> int:
        return sum(map(len, self._books.values()))

    @property
    def books(self) -> Collection[RecordBook]:
        return self._books.values()

    # ------------------------------------------------------------------ packets in

    @property
    def has_unread(self) -> bool:
        return self._unread > 0

    @property
    def is_tight(self) -> bool:
        """True once somebody told more than was taken, so that it matters who is who."""
        return bool(self.unread_of or self.unheard) or self._quota.is_tight

    def put(self, source: str, packet: bytes) -> None:
        """Take a packet in. Whoever has sent more than its share is not listened to for now."""
        announcer = self._announcer(source)
        is_wanted = source in self._quota.wanted().addresses
        if not self._reading.take(announcer, len(packet) + _PACKET_BYTES) and not is_wanted:
            self._leave_unread(announcer)
            return
        mail = self._mail.setdefault(announcer, _Mail())
        mail.packets.append((source, packet))
        mail.size_bytes += len(packet)
        self._unread += 1
        self._unread_bytes += len(packet)
        if self._unread > UNREAD_MAX or self._unread_bytes > UNREAD_MAX_BYTES:
            most = max(self._mail, key=lambda each: self._mail[each].size_bytes)
            self._take(most, newest=True)
            self._leave_unread(most)

    def next_packet(self) -> tuple[str, bytes] | None:
        """Return a packet and its sender, of each announcer in turn; None when all are read."""
        if not self._mail:
            return None
        announcer = next(iter(self._mail))
        packet = self._take(announcer)
        if announcer in self._mail:
            self._mail[announcer] = self._mail.pop(announcer)  # to the end of the line
        return packet

    def _take(self, announcer: str, *, newest: bool = False) -> tuple[str, bytes]:
        mail = self._mail[announcer]
        packet = mail.packets.pop() if newest else mail.packets.popleft()
        mail.size_bytes -= len(packet[1])
        self._unread -= 1
        self._unread_bytes -= len(packet[1])
        if not mail.packets:
            del self._mail[announcer]
        return packet

    def _leave_unread(self, announcer: str) -> None:
        if announcer in self.unread_of or len(self.unread_of) < SOURCES_MAX:
            self.unread_of[announcer] = self.unread_of.get(announcer, 0) + 1

    def add(self, source: str, records: Iterable[Record]) -> bool:
        """Keep what ``source`` told; True when it told anything new."""
        book = self._book(source)
        if book is None:
            self.unheard += 1
            return False
        types = len(book.types)
        is_news = book.add(records)
        for each in tuple(book.types)[types:]:
            if each not in self.types and self._types.take(book.announcer, 1):
                self.types[each] = None
        return is_news

    def add_proved(self, source: str, records: Iterable[Record]) -> None:
        """Keep what surely comes from ``source``; what was only heard from there is forgotten."""
        book = self._books.get(source)
        if book is None or not book.is_proved:
            if book is not None:
                self._books.pop(source).close()
            elif len(self._books) >= SOURCES_MAX:
                self._forget_one(source, is_better=True)
            book = self._open(source)
            book.is_proved = True
        book.add(records)

    def lacking(self, source: str) -> list[Question]:
        """Return the questions whose answers ``source`` itself has not told of its services."""
        book = self._books.get(source)
        if book is None:
            return []
        told = _Told((book,))
        found = (question for key in book.keys for question in _lacking_of(key, book, told))
        return list(islice(found, LACKING_MAX))

    def _open(self, source: str) -> RecordBook:
        quota = self._quota.ipv6 if ":" in source else self._quota
        book = self._books[source] = RecordBook(self.interface_name, quota, source)
        if (announcer := self._announcer(source)) != source:
            book.count_for(announcer)
        return book

    def _book(self, source: str) -> RecordBook | None:
        book = self._books.get(source)
        if book is not None:
            return book
        if len(self._books) >= SOURCES_MAX and not self._forget_one(source):
            return None
        return self._open(source)

    def _forget_one(self, newcomer: str, *, is_better: bool = False) -> bool:
        """Forget an address for which nobody is known to answer, in favour of one that is better:
        somebody answers for it, or a printer is known there."""
        wanted = self._quota.wanted().addresses
        is_better |= newcomer in wanted or self._macs.get(newcomer, NOBODY) != NOBODY
        weak = (
            source
            for source in reversed(self._books)
            if source not in wanted and self._macs.get(source, NOBODY) == NOBODY
        )
        left = next(weak, None) if is_better else None
        if left is None:
            return False
        self._books.pop(left).close()
        self.unheard += 1
        return True

    # ------------------------------------------------------------------ who is who

    def _announcer(self, source: str) -> str:
        known = self._macs.get(source)
        return known or (NOBODY if is_beyond(source, self._networks) else source)

    def tell_apart(self, table: Iterable[LinkNeighbour]) -> None:
        """Learn from the neighbour table which addresses are one device, or none."""
        for entry in table:
            announcer = NOBODY if entry.state == "failed" else entry.mac_address
            if announcer is None or entry.address in self._macs:
                continue
            self._macs[entry.address] = announcer
            for pool in (self._reading, self._questions, self._types):
                pool.hand_over(entry.address, announcer)
            if unread := self.unread_of.pop(entry.address, 0):
                self.unread_of[announcer] = self.unread_of.get(announcer, 0) + unread
            if entry.address in self._books:
                self._books[entry.address].count_for(announcer)

    def named(self, announcer: str) -> str:
        """Return ``192.168.1.66 (MAC 02:…)`` for the MAC of an announcer, where it is known."""
        address = next((a for a, mac in self._macs.items() if mac == announcer), None)
        if announcer == NOBODY or address is None:
            return announcer
        return f"{address} (MAC {announcer})"

    def next_round(self) -> None:
        """A round of questions begins: its answers may be many again."""
        self._reading.refill()

    # ------------------------------------------------------------------ what to ask

    def instances(self) -> dict[str, list[tuple[str, ...]]]:
        """Return the names, in labels, of the instances of each type (``_ipp._tcp``)."""
        found: dict[str, list[tuple[str, ...]]] = {}
        for key, book in self._tellers().items():
            _, *kind, _ = labels = book.labels(key)
            found.setdefault(".".join(kind), []).append(labels)
        return found

    def missing(self) -> list[Question]:
        """Return the questions whose answers are lacking, of each announcer in turn."""
        told = _Told(self._books.values())
        lacking = [
            (book.announcer, question)
            for key, book in self._tellers().items()
            for question in _lacking_of(key, book, told)
        ]
        self._askers = {question: announcer for announcer, question in lacking}
        return list(dict.fromkeys(in_turns(lacking)))

    def may_ask(self, question: Question) -> bool:
        """Tell whether one of ``missing`` may be asked; what one announcer costs is bounded."""
        return self._questions.take(self._askers[question], 1)

    # ------------------------------------------------------------------ what was told

    def services(self) -> Iterator[MdnsService]:
        """Yield the instances with all that is known about them, cleaned and bounded.

        One that several announcers tell of is yielded once for each.
        """
        told = _Told(self._books.values())
        tellers: dict[str, list[RecordBook]] = {}
        for book in self._books.values():
            for key in book.keys:
                tellers.setdefault(key, []).append(book)
        for key, books in tellers.items():
            placed = [book for book in books if book.place(key)]
            yield from _joined([_service(key, book, told) for book in placed or books[:1]])

    def _tellers(self) -> dict[str, RecordBook]:
        """Return for each instance a book that has it, one that knows its place if any does."""
        tellers: dict[str, RecordBook] = {}
        for book in self._books.values():
            for key in book.keys:
                if key not in tellers or (book.place(key) and not tellers[key].place(key)):
                    tellers[key] = book
        return tellers


class _Told:
    """What a book tells of a name, or else what any other does."""

    def __init__(self, books: Collection[RecordBook]) -> None:
        self._addresses: dict[str, dict[str, None]] = {}
        self._texts: dict[str, bytes] = {}
        for book in books:
            for host, addresses in book.hosts:
                self._addresses.setdefault(host, {}).update(dict.fromkeys(addresses))
            for key, text in book.texts:
                self._texts.setdefault(key, text)

    def addresses(self, host: str, book: RecordBook) -> Sequence[str]:
        others = islice(self._addresses.get(host.lower(), ()), ADDRESSES_PER_HOST_MAX)
        return book.addresses(host) or tuple(others)

    def text(self, key: str, book: RecordBook) -> bytes | None:
        own = book.text(key)
        return self._texts.get(key) if own is None else own


def _lacking_of(key: str, book: RecordBook, told: _Told) -> Iterator[Question]:
    labels = book.labels(key)
    if "\ufffd" in labels[0]:
        return  # the bytes sent are not known any more, so nobody would answer
    place = book.place(key)
    if place is None:
        yield Question(labels, "SRV")
    elif not told.addresses(place.host, book):
        host = tuple(place.host.lower().split("."))
        yield Question(host, "A")
        yield Question(host, "AAAA")
    if told.text(key, book) is None:
        yield Question(labels, "TXT")


def _service(key: str, book: RecordBook, told: _Told) -> MdnsService:
    label, *kind, _ = book.labels(key)
    place = book.place(key)
    host = place.host if place else ""
    return MdnsService(
        instance=clean_text(label, NAME_MAX),
        type=clean_text(".".join(kind), NAME_MAX),
        hostname=clean_text(host, NAME_MAX),
        addresses=_in_order(told.addresses(host, book)),
        port=place.port if place else 0,
        txt=parse_txt(told.text(key, book) or b""),
        interface_name=book.interface_name,
        announcer=book.source,
    )


def _joined(services: Sequence[MdnsService]) -> list[MdnsService]:
    """Join what one device tells by IPv6 with what it tells by IPv4.

    A device speaks both from addresses of its own. The IPv4 side names the other one, or is the
    only one that has a service of this name, on this host and port.
    """
    mains = [each for each in services if ":" not in each.announcer]
    alone: list[MdnsService] = []
    for twin in services:
        if ":" not in twin.announcer:
            continue
        same = [
            m for m in mains if (m.hostname.lower(), m.port) == (twin.hostname.lower(), twin.port)
        ]
        naming = [m for m in same if twin.announcer in m.addresses]
        other = next(iter(naming or (same if len(same) == 1 else ())), None)
        extra = [a for a in twin.addresses if ":" in a or (other and a in other.addresses)]
        if other is None or len(extra) < len(twin.addresses):
            alone.append(twin)
            continue
        addresses = dict.fromkeys((*other.addresses, *extra))
        whole = replace(other, addresses=_in_order(islice(addresses, ADDRESSES_PER_HOST_MAX)))
        mains[mains.index(other)] = whole
    return [*mains, *alone]


def _in_order(addresses: Iterable[str]) -> tuple[str, ...]:
    """Order addresses by how useful they are to a person: IPv4, IPv6, IPv6 of the link only."""
    parsed = (ipaddress.ip_address(each) for each in addresses)
    ordered = sorted(parsed, key=lambda each: (each.version, each.is_link_local))
    return tuple(str(each) for each in ordered)
