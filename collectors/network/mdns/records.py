"""The records that one announcer told on one interface, and how many may be kept of all."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from collectors.network.fair_share import Pool
from collectors.network.mdns.wire import (
    AddressRecord,
    PointerRecord,
    Record,
    ServiceRecord,
    TextRecord,
)
from collectors.network.observations import NOTHING_WANTED, Wanted
from collectors.shared.text import clean_text, decode_text

ENUMERATION = "_services._dns-sd._udp.local"
TYPES_MAX = 256
ADDRESSES_PER_HOST_MAX = 8
TXT_PAIRS_MAX = 64
TXT_MAX_BYTES = 8192
TXT_VALUE_MAX = 1024
NAME_MAX = 255
_DOMAIN = ".local"
_REVERSE_DOMAIN = ".arpa"
DROPPED_COUNTED_MAX = 20_000


RECORDS_MAX_BYTES = 32 * 2**20
"""What all records kept may take of memory, as ``_cost`` counts them: rather too much than too
little. 5,000 services of one announcer fit into its half."""

WANTED_PER_ANNOUNCER_MAX = 64
"""Instances of one announcer that may take the place of others because printers need them."""

_RECORD_BYTES = 400  # what a record takes beside its text: objects and their places in tables

Value = TypeVar("Value")


class Quota:
    """What may still be kept, over all interfaces, and what was left out, by announcer.

    ``services`` bounds the instances. When that many are kept, an announcer with fewer takes the
    place of one with more, and what is ``wanted`` the place of anything else. Instances told by
    IPv6 are counted apart (``ipv6``): they are those told by IPv4 once more, or made up.
    """

    def __init__(
        self,
        services: int,
        wanted: Callable[[], Wanted] = lambda: NOTHING_WANTED,
        ipv4: "Quota | None" = None,
    ) -> None:
        self.services = services
        self.memory: Pool = ipv4.memory if ipv4 else Pool(RECORDS_MAX_BYTES)
        self.dropped: set[int] = ipv4.dropped if ipv4 else set()
        self.dropped_of: dict[str, int] = ipv4.dropped_of if ipv4 else {}
        self.records_dropped_of: dict[str, int] = ipv4.records_dropped_of if ipv4 else {}
        self.wanted = wanted
        self.ipv6: Quota = self if ipv4 else Quota(services, wanted, self)
        self._left = services
        self._books: dict[str, list[RecordBook]] = {}
        self._most = services  # nobody has more

    @property
    def is_tight(self) -> bool:
        """True once anything was left out."""
        return bool(self.dropped or self.records_dropped_of)

    def join(self, book: "RecordBook") -> None:
        self._books.setdefault(book.announcer, []).append(book)

    def leave(self, book: "RecordBook") -> None:
        """Forget a book; the place of its services is free again."""
        self._part(book)
        self._left += len(book)

    def rename(self, book: "RecordBook", announcer: str) -> None:
        """Count a book as that of ``announcer`` from now on."""
        self._part(book)
        if dropped := self.dropped_of.pop(book.announcer, 0):
            self.dropped_of[announcer] = self.dropped_of.get(announcer, 0) + dropped
        self.memory.give_back(book.announcer, book.size_bytes)
        book.announcer = announcer
        self.join(book)
        self.memory.take(announcer, book.size_bytes)
        self._most = self.services

    def _part(self, book: "RecordBook") -> None:
        books = self._books[book.announcer]
        books.remove(book)
        if not books:
            del self._books[book.announcer]

    def take(self, book: "RecordBook", key: str, *, is_wanted: bool) -> bool:
        """Tell whether ``book`` may keep one more instance."""
        if self._left > 0:
            self._left -= 1
            return True
        if self._make_room(self._count(book.announcer), is_wanted=is_wanted):
            return True
        self.drop(book.announcer, key)
        return False

    def drop(self, announcer: str, key: str) -> None:
        """Count an instance that was left out, once however often it comes."""
        mark = hash((announcer, key))
        if len(self.dropped) < DROPPED_COUNTED_MAX and mark not in self.dropped:
            self.dropped.add(mark)
            self.dropped_of[announcer] = self.dropped_of.get(announcer, 0) + 1

    def drop_record(self, announcer: str) -> None:
        """Count a record for which there was no memory left."""
        known = self.records_dropped_of
        if announcer in known or len(known) < DROPPED_COUNTED_MAX:
            known[announcer] = known.get(announcer, 0) + 1

    def _make_room(self, held: int, *, is_wanted: bool) -> bool:
        """Let the announcer of most give up one instance, unless the taker would have as many."""
        is_wanted = is_wanted and held < WANTED_PER_ANNOUNCER_MAX
        if not is_wanted and held + 1 >= self._most:
            return False
        counts = {announcer: self._count(announcer) for announcer in self._books}
        givers = sorted(counts, key=lambda each: counts[each], reverse=True)
        self._most = max(counts[givers[0]], held + 1)
        for giver in givers:
            if not is_wanted and held + 1 >= counts[giver]:
                return False
            for book in sorted(self._books[giver], key=len, reverse=True):
                if (key := book.give_up_one()) is not None:
                    self.drop(giver, key)
                    return True
        return False

    def _count(self, announcer: str) -> int:
        return sum(map(len, self._books.get(announcer, ())))


@dataclass(frozen=True, slots=True)
class _Instance:
    """``type`` is like ``_ipp._tcp``; ``label`` is the name before it, as sent."""

    label: str
    type: str


class RecordBook:
    """What one address told on one interface. Every store is bounded; names have no case.

    ``announcer`` is whom it counts for: ``source``, or the MAC once that is known. ``is_proved``
    tells that all of it surely came from ``source``.
    """

    def __init__(self, interface_name: str, quota: Quota, source: str = "") -> None:
        self.interface_name = interface_name
        self.source = source
        self.announcer = source
        self.is_proved = False
        self.size_bytes = 0
        self.types: dict[str, None] = {}
        self.reverse_names: dict[str, str] = {}
        self._quota = quota
        self._records_max = 2 * quota.services + 64
        self._instances: dict[str, _Instance] = {}
        self._places: dict[str, ServiceRecord] = {}
        self._texts: dict[str, bytes] = {}
        self._addresses: dict[str, dict[str, None]] = {}
        quota.join(self)

    def __len__(self) -> int:
        return len(self._instances)

    def add(self, records: Iterable[Record]) -> bool:
        """Keep the records; True when they told anything new."""
        news = [self._add(record) for record in records]
        return any(news)

    def count_for(self, announcer: str) -> None:
        """Count all of it as that of ``announcer`` from now on."""
        self._quota.rename(self, announcer)

    def close(self) -> None:
        """Give back all that it holds of the allowance."""
        self._quota.memory.give_back(self.announcer, self.size_bytes)
        self._quota.leave(self)

    @property
    def keys(self) -> Iterable[str]:
        return self._instances.keys()

    def labels(self, key: str) -> tuple[str, ...]:
        return _labels(self._instances[key])

    def place(self, key: str) -> ServiceRecord | None:
        return self._places.get(key)

    def text(self, key: str) -> bytes | None:
        return self._texts.get(key)

    @property
    def texts(self) -> Iterable[tuple[str, bytes]]:
        return self._texts.items()

    @property
    def hosts(self) -> Iterable[tuple[str, Iterable[str]]]:
        """Give the host names with the addresses told for them."""
        return self._addresses.items()

    def addresses(self, host: str) -> Sequence[str]:
        """Return the addresses told for a host name, in the order in which they came."""
        return tuple(self._addresses.get(host.lower(), ()))

    def give_up_one(self) -> str | None:
        """Forget the newest instance that nobody wants; None when there is none."""
        wanted = self._quota.wanted()
        for key in reversed(self._instances):
            instance = self._instances[key]
            if not self._is_wanted(instance.label, wanted):
                self._pay(-_cost(key, instance.label))
                del self._instances[key]
                self._forget(self._places, key)
                self._forget(self._texts, key)
                return key
        return None

    def _add(self, record: Record) -> bool:
        if isinstance(record, PointerRecord):
            return self._add_pointer(record)
        if isinstance(record, ServiceRecord):
            return self._add_place(record)
        if isinstance(record, TextRecord):
            return self._keep(self._texts, record.name.lower(), record.text[:TXT_MAX_BYTES])
        return self._add_address(record)

    def _add_pointer(self, record: PointerRecord) -> bool:
        name = record.name.lower()
        if name == ENUMERATION:
            return self._add_type(record.target)
        if name.endswith(_REVERSE_DOMAIN):
            return self._keep(self.reverse_names, name, clean_text(record.target, NAME_MAX))
        return self._add_instance(record.target, name)

    def _add_place(self, record: ServiceRecord) -> bool:
        """Keep where a service is. Its name tells that there is one: the PTR record may have been
        held back because another told the same (RFC 6762, section 7.4)."""
        key = record.name.lower()
        is_new = self._add_instance(record.name, key.split(".", key.count(".") - 2)[-1])
        return (key in self._instances and self._keep(self._places, key, record)) or is_new

    def _add_instance(self, full_name: str, name: str) -> bool:
        service_type = service_type_of(name)
        suffix = "." + name
        key = full_name.lower()
        if service_type is None or not key.endswith(suffix) or key in self._instances:
            return False
        instance = _Instance(full_name[: -len(suffix)], service_type)
        is_wanted = self._is_wanted(instance.label, self._quota.wanted())
        if not self._pay(_cost(key, instance.label)):
            return False
        if not self._quota.take(self, key, is_wanted=is_wanted):
            self._pay(-_cost(key, instance.label))
            return False
        self._instances[key] = instance
        return True

    def _is_wanted(self, label: str, wanted: Wanted) -> bool:
        is_known = self.source in wanted.addresses or label.lower() in wanted.names
        return self.is_proved or is_known

    def _add_type(self, target: str) -> bool:
        service_type = service_type_of(target.lower())
        if service_type is None or service_type in self.types or len(self.types) >= TYPES_MAX:
            return False
        self.types[service_type] = None
        return True

    def _add_address(self, record: AddressRecord) -> bool:
        name = record.name.lower()
        addresses = self._addresses.get(name)
        if addresses is None:
            is_full = len(self._addresses) >= self._records_max
            if is_full or not self._pay(_cost(name, record.address)):
                return False
            addresses = self._addresses.setdefault(name, {})
        if record.address in addresses or len(addresses) >= ADDRESSES_PER_HOST_MAX:
            return False
        addresses[record.address] = None
        return True

    def _keep(self, store: dict[str, Value], key: str, value: Value) -> bool:
        """Keep the newest value, as the cache-flush bit of these record types asks for."""
        before = store.get(key)
        if before == value:
            return False
        if before is None and len(store) >= self._records_max:
            return False
        self._forget(store, key)
        if not self._pay(_cost(key, value)):
            return False
        store[key] = value
        return True

    def _forget(self, store: dict[str, Value], key: str) -> None:
        before = store.pop(key, None)
        if before is not None:
            self._pay(-_cost(key, before))

    def _pay(self, amount_bytes: int) -> bool:
        """Take memory of the allowance, or give it back; False when there is too little."""
        if amount_bytes < 0:
            self._quota.memory.give_back(self.announcer, -amount_bytes)
        elif not self._quota.memory.take(self.announcer, amount_bytes):
            self._quota.drop_record(self.announcer)
            return False
        self.size_bytes += amount_bytes
        return True


def _cost(key: str, value: object) -> int:
    """Return about how much memory a record takes, in bytes."""
    length = len(value) if isinstance(value, str | bytes) else NAME_MAX
    return _RECORD_BYTES + 2 * len(key) + length


def service_type_of(name: str) -> str | None:
    """Return ``_ipp._tcp`` for ``_ipp._tcp.local``; None for a name that is no service type."""
    labels = name.removesuffix(_DOMAIN).split(".")
    is_type = (
        len(labels) == 2 and labels[0].startswith("_") and labels[1] in ("_tcp", "_udp")
    )  # service and protocol
    return ".".join(labels) if is_type and name.endswith(_DOMAIN) else None


def parse_txt(text: bytes) -> tuple[tuple[str, str], ...]:
    """Read the ``key=value`` strings of a TXT record; the first of a key wins (RFC 6763, 6.4).

    Never raises: a string that runs over the end, or has no key, is left out.
    """
    pairs: dict[str, str] = {}
    offset = 0
    while offset < len(text) and len(pairs) < TXT_PAIRS_MAX:
        end = offset + 1 + text[offset]
        key, _, value = text[offset + 1 : end].partition(b"=")
        name = decode_text(key, NAME_MAX).lower()
        if name and end <= len(text):
            pairs.setdefault(name, decode_text(value, TXT_VALUE_MAX))
        offset = end
    return tuple(pairs.items())


def _labels(instance: _Instance) -> tuple[str, ...]:
    return (instance.label, *instance.type.split("."), "local")
