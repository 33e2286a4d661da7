"""Stores the records of one interface, separately for each address that sent them.

An announcer cannot change or remove the records of another one, because a record counts only for
the address that sent it. Records are joined when services are listed (services.py).

The neighbour table shows which addresses belong to one device. These addresses are one announcer,
named by the MAC. All addresses that do not answer ARP also count as one announcer, because some of
them may be forged.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from collectors.network.fair_share import FairQueue, Pool
from collectors.network.mdns.records import TYPES_MAX, Quota, RecordBook
from collectors.network.mdns.wire import Record
from collectors.shared.addresses import Network, is_outside
from collectors.shared.linux.rtnetlink import LinkNeighbour

SOURCES_MAX = 2048
"""The most addresses whose records are stored for one interface. Addresses that answer a direct
query are stored beyond this limit."""
QUEUED_MAX = 4096
QUEUED_MAX_BYTES = 6 * 2**20
"""The most packets that wait to be parsed, and the most bytes of these packets."""
PARSED_MAX_BYTES = 16 * 2**20
"""The most bytes of packets that are parsed between two rounds of questions. One announcer alone
gets at most half of them."""
QUESTIONS_MAX = 8000
"""The most questions for missing records that are sent on one interface."""
NO_HOST = "addresses at which no host answers ARP"

_PACKET_BYTES = 300  # added to the length of a packet for the fixed cost of parsing it


class LinkRecords:
    """The packets and records of one interface. Announcers share each limit fairly.

    ``networks`` are the networks of the interface: an address outside of them cannot answer ARP.
    ``types`` are the service types that hosts announced. ``rejected`` counts how often packets or
    records were discarded because more than ``SOURCES_MAX`` addresses sent packets.
    """

    def __init__(self, interface_name: str, quota: Quota, networks: Sequence[Network] = ()) -> None:
        self.interface_name = interface_name
        self.quota = quota
        self.types: dict[str, None] = {}
        self.rejected = 0
        self._dropped_packets: Counter[str] = Counter()
        self._networks = networks
        self._books: dict[str, RecordBook] = {}
        self._announcers: dict[str, str] = {}
        self._queue = FairQueue(QUEUED_MAX, QUEUED_MAX_BYTES)
        self._parsing_pool = Pool(PARSED_MAX_BYTES)
        self._question_pool = Pool(QUESTIONS_MAX)
        self._type_pool = Pool(2 * TYPES_MAX)  # one announcer alone gets at most half of a pool

    def __len__(self) -> int:
        """Return the number of service instances, counted once for each address that sent them."""
        return sum(len(book.instances) for book in self._books.values())

    @property
    def books(self) -> Collection[RecordBook]:
        return self._books.values()

    def book_of(self, source: str) -> RecordBook | None:
        return self._books.get(source)

    @property
    def is_overloaded(self) -> bool:
        """Whether any packet or record was left out because there were too many.

        Then the neighbour table is read, so that the addresses of one device share one limit.
        """
        is_cut = any(book.dropped or book.dropped_records for book in self._books.values())
        return is_cut or bool(self._dropped_packets or self.rejected) or self.quota.is_exceeded

    # ------------------------------------------------------------------ packets

    @property
    def has_queued_packets(self) -> bool:
        return len(self._queue) > 0

    def put(self, source: str, packet: bytes) -> None:
        """Queue a packet, unless its announcer has sent more than its share of this round.

        Packets from addresses of this machine's printers are put in the queue even beyond that
        share. A full queue drops the newest packet of the announcer whose packets have the most
        bytes in the queue, even if this announcer is a printer.
        """
        announcer = self.announcer(source)
        is_printer = source in self.quota.identifiers().addresses
        dropped_sources = [source]
        if self._parsing_pool.take(announcer, len(packet) + _PACKET_BYTES) or is_printer:
            dropped_sources = self._queue.put(announcer, source, packet)
        for dropped in dropped_sources:
            if dropped in self._dropped_packets or len(self._dropped_packets) < SOURCES_MAX:
                self._dropped_packets[dropped] += 1

    def next_packet(self) -> tuple[str, bytes] | None:
        """Return the source and the bytes of the next packet. Announcers take turns."""
        return self._queue.take()

    def next_round(self) -> None:
        """Begin a new round of questions: each announcer gets a new share of parsed bytes."""
        self._parsing_pool.refill()

    # ------------------------------------------------------------------ records

    def add(self, source: str, records: Iterable[Record]) -> bool:
        """Store the records that ``source`` sent. Returns whether anything was new."""
        book = self._books.get(source) or self._open(source)
        if book is None:
            self.rejected += 1
            return False
        count_before = len(book.types)
        is_new = book.add(records)
        for type_ in tuple(book.types)[count_before:]:
            if type_ not in self.types and self._type_pool.take(book.announcer, 1):
                self.types[type_] = None
        return is_new

    def add_verified(self, source: str, records: Iterable[Record]) -> None:
        """Store records that certainly came from ``source``.

        They replace all records of ``source`` from multicast packets, which may be forged.
        """
        book = self._books.get(source)
        if book and not book.is_verified:
            self._books.pop(source).close()
            book = None
        if book := book or self._open(source, is_verified=True):
            book.add(records)

    def addresses_with_several_names(self) -> set[str]:
        """Return the IPv4 addresses that announced themselves under more than one host name.

        Two programs of one host may be the reason, or a host that forges its source address.
        """
        return {s for s, book in self._books.items() if ":" not in s and len(book.own_names) > 1}

    def confirm(self, source: str, records: Iterable[Record]) -> None:
        """Store records that certainly came from ``source``, beside those from multicast packets.

        Services that conflict with ``records`` are not listed (services.py).
        """
        if book := self._books.get(source):
            book.confirm(records)

    def _open(self, source: str, *, is_verified: bool = False) -> RecordBook | None:
        """Return a new book for an address, or None if there is no room for it."""
        is_full = len(self._books) >= SOURCES_MAX
        if is_full and not (self._forget_one(source, is_verified=is_verified) or is_verified):
            return None
        book = self._books[source] = RecordBook(self.quota, source, self.announcer(source))
        book.is_verified = is_verified
        return book

    def _forget_one(self, newcomer: str, *, is_verified: bool) -> bool:
        """Remove the book of an address that is not known to answer ARP, to make room.

        The room is for the book of ``newcomer``. The book of a printer's address is never removed.
        A book is removed only if ``newcomer`` answers ARP, is a printer's address, or has answered
        a direct query. Returns whether a book was removed.
        """

        printer_addresses = self.quota.identifiers().addresses

        def is_weak(source: str) -> bool:
            announcer = self._announcers.get(source, NO_HOST)
            return source not in printer_addresses and announcer == NO_HOST

        weakest = next(filter(is_weak, reversed(self._books)), None)
        if weakest is None or (is_weak(newcomer) and not is_verified):
            return False
        self._books.pop(weakest).close()
        self.rejected += 1
        return True

    # ------------------------------------------------------------------ announcers

    def announcer(self, source: str) -> str:
        """Return the announcer of an address: its MAC, `NO_HOST`, or the address itself."""
        known = self._announcers.get(source)
        return known or (NO_HOST if is_outside(source, self._networks) else source)

    def identify(self, table: Iterable[LinkNeighbour]) -> None:
        """Set the announcers of addresses from the neighbour table."""
        for entry in table:
            announcer = NO_HOST if entry.state == "failed" else entry.mac_address
            if announcer is None or entry.address in self._announcers:
                continue
            self._announcers[entry.address] = announcer
            for pool in (self._parsing_pool, self._question_pool, self._type_pool):
                pool.hand_over(entry.address, announcer)
            if entry.address in self._books:
                self._books[entry.address].hand_over(announcer)

    def describe(self, announcer: str) -> str:
        """Return ``192.168.1.66 (MAC 02:…)`` for a MAC, and any other announcer unchanged."""
        address = next((a for a, known in self._announcers.items() if known == announcer), None)
        if announcer == NO_HOST or address is None:
            return announcer
        return f"{address} (MAC {announcer})"

    def take_question(self, announcer: str) -> bool:
        """Count a question about an announcer's records. Returns False if it must not be sent."""
        return self._question_pool.take(announcer, 1)

    # ------------------------------------------------------------------ what was left out

    @property
    def dropped_packets(self) -> Counter[str]:
        """The number of packets that were not read, by announcer."""
        packets: Counter[str] = Counter()
        for source, count in self._dropped_packets.items():
            packets[self.announcer(source)] += count
        return packets

    def left_out(self, count: Callable[[RecordBook], int]) -> Counter[str]:
        """Return for each announcer the sum of ``count`` over its books."""
        counts: Counter[str] = Counter()
        for book in self._books.values():
            counts[book.announcer] += count(book)
        return +counts
