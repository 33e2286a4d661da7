"""Stores the mDNS records that one address sent on one interface.

All addresses share the limits of one `Quota`.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from collectors.network.fair_share import Pool
from collectors.network.mdns.wire import (
    AddressRecord,
    PointerRecord,
    Record,
    ServiceRecord,
    TextRecord,
)
from collectors.network.observations import NO_IDENTIFIERS, PrinterIdentifiers
from collectors.shared.text import decode_text

ENUMERATION = "_services._dns-sd._udp.local"
"""The name whose PTR records list service types (RFC 6763, section 9)."""
TYPES_MAX = 256
ADDRESSES_PER_HOST_MAX = 8
TXT_PAIRS_MAX = 64
TXT_MAX_BYTES = 8192
TXT_VALUE_MAX = 1024
NAME_MAX = 255
RECORDS_MAX_BYTES = 32 * 2**20
"""Maximum memory of all stored records, by the cautious estimate of ``_cost``. One announcer can
use at most half of it, which is enough for 5,000 services."""
PRINTERS_PER_ANNOUNCER_MAX = 64
"""Maximum number of instances of one announcer that are listed before all others because they have
priority (`RecordBook.has_priority`). If an announcer has used up its share of the pool, each of its
books still stores such instances until the book has this number of instances."""

_DOMAIN = ".local"
_INSTANCES_FACTOR = 4
_RECORD_BYTES = 400  # the memory of a record's objects and table entries, without its text
DROPPED_BYTES = 100  # the memory of one hash in a set

Value = TypeVar("Value")


class Quota:
    """The limits of all interfaces together. ``services`` is the limit of the final list.

    ``identifiers`` returns the names and addresses of this machine's printers. Instances with such
    a name or from such an address get priority (`RecordBook.has_priority`).

    The maximum number of stored instances is four times ``services``. A single announcer gets at
    most half of this number, so that there is always room for other announcers. Instances that
    were announced over IPv6 have a pool of their own, because most of them repeat an instance that
    was announced over IPv4, or are forged.
    """

    def __init__(
        self, services: int, identifiers: Callable[[], PrinterIdentifiers] = lambda: NO_IDENTIFIERS
    ) -> None:
        self.services = services
        self.identifiers = identifiers
        self.memory = Pool(RECORDS_MAX_BYTES)
        # One pool for IPv4 and one for IPv6.
        self.instances = {is_v6: Pool(_INSTANCES_FACTOR * services) for is_v6 in (False, True)}

    @property
    def is_exceeded(self) -> bool:
        """Whether more instances are stored than can be listed."""
        return any(pool.used > self.services for pool in self.instances.values())


class Instance(NamedTuple):
    """An instance of a service. ``type`` is like ``_ipp._tcp``; ``label`` is the name before it."""

    label: str
    type: str

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.label, *self.type.split("."), "local")


class RecordBook:
    """The records that one address sent on one interface. All tables are limited in size.

    The keys of the tables are in lower case. ``types`` are the service types that the host lists.
    ``instances``, ``servers`` (SRV records) and ``texts`` (TXT records) have the full name of an
    instance as key. ``hosts`` maps each host name to its addresses. ``size_bytes`` is the memory
    that the records take from the pool. ``announcer`` is the holder of this book's shares of the
    pools: the address ``source``, its MAC once the MAC is known, or `NO_HOST` (announcers.py).
    ``is_verified``: all records certainly came from ``source``. ``dropped`` are the hashes of
    instances beyond the limit of instances. ``dropped_records`` counts the records for which there
    was no memory. ``confirmed`` are the keys of the instances that the host confirmed when it was
    queried directly.
    """

    def __init__(self, quota: Quota, source: str, announcer: str) -> None:
        self.source = source
        self.announcer = announcer
        self.is_verified = False
        self.size_bytes = 0
        self.types: dict[str, None] = {}
        self.instances: dict[str, Instance] = {}
        self.servers: dict[str, ServiceRecord] = {}
        self.texts: dict[str, bytes] = {}
        self.hosts: dict[str, dict[str, None]] = {}
        self.dropped: set[int] = set()
        self.dropped_records = 0
        self.confirmed: set[str] = set()
        self._quota = quota
        self._instance_pool = quota.instances[":" in source]
        self._pooled = 0  # the number of instances that were taken from the pool
        self._records_max = 2 * quota.services + 64  # of one table

    def add(self, records: Iterable[Record]) -> bool:
        """Store the records. Returns whether anything was new."""
        results = [self._add(record) for record in records]
        return any(results)

    def confirm(self, records: Iterable[Record]) -> None:
        """Store records that certainly came from ``source``. Mark their instances as confirmed."""
        records = list(records)
        self.add(records)
        names = {r.name.lower() for r in records if isinstance(r, ServiceRecord)}
        names |= {r.target.lower() for r in records if isinstance(r, PointerRecord)}
        self.confirmed |= names & self.instances.keys()

    @property
    def own_names(self) -> set[str]:
        """The host names that are in SRV records and have the address ``source``."""
        names = {record.host.lower() for record in self.servers.values()}
        return {name for name in names if self.source in self.hosts.get(name, ())}

    def refuted(self) -> set[str]:
        """Return the full names of the services that a different host probably forged.

        A service counts as forged if all of this is true: its host name has the address
        ``source``; the host at ``source`` confirmed a service on the port of this service; that
        host confirmed no service with this host name.
        """
        if not self.confirmed:
            return set()
        confirmed = [self.servers[key] for key in self.confirmed & self.servers.keys()]
        ports = {record.port for record in confirmed}
        false_names = self.own_names - {record.host.lower() for record in confirmed}
        return {
            key
            for key, record in self.servers.items()
            if record.port in ports and record.host.lower() in false_names
        }

    def hand_over(self, announcer: str) -> None:
        """Move this book's shares of the pools to ``announcer``."""
        self._quota.memory.hand_over(self.announcer, announcer, self.size_bytes)
        self._instance_pool.hand_over(self.announcer, announcer, self._pooled)
        self.announcer = announcer

    def close(self) -> None:
        """Return all memory and instances of this book to the pools."""
        self._quota.memory.give_back(self.announcer, self.size_bytes)
        self._instance_pool.give_back(self.announcer, self._pooled)

    def has_priority(self, label: str) -> bool:
        """Return whether an instance is stored and listed before others.

        This is so if it has the name of a printer of this machine, if ``source`` is the address of
        such a printer, or if the book is verified.
        """
        identifiers = self._quota.identifiers()
        is_known = self.source in identifiers.addresses or label.lower() in identifiers.names
        return self.is_verified or is_known

    def _add(self, record: Record) -> bool:
        name = record.name.lower()
        if isinstance(record, PointerRecord):
            if name == ENUMERATION:
                return self._add_type(record.target)
            return self._add_instance(record.target, name)
        if isinstance(record, ServiceRecord):
            # The PTR record may have been suppressed because another host sent the same one
            # (RFC 6762, section 7.4). The name of the SRV record shows that the service exists.
            is_new = self._add_instance(record.name, name.split(".", name.count(".") - 2)[-1])
            return (name in self.instances and self._keep(self.servers, name, record)) or is_new
        if isinstance(record, TextRecord):
            return self._keep(self.texts, name, record.text[:TXT_MAX_BYTES])
        return self._add_address(name, record)

    def _add_type(self, target: str) -> bool:
        service_type = service_type_of(target.lower())
        if service_type is None or service_type in self.types or len(self.types) >= TYPES_MAX:
            return False
        self.types[service_type] = None
        return True

    def _add_instance(self, full_name: str, type_name: str) -> bool:
        service_type = service_type_of(type_name)
        suffix, key = "." + type_name, full_name.lower()
        if service_type is None or not key.endswith(suffix) or key in self.instances:
            return False
        label = full_name[: -len(suffix)]
        if not self._reserve(_cost(key, label)):
            return False
        if not self._take_room(label):
            self._reserve(-_cost(key, label))
            key_hash = hash(key)
            is_counted = key_hash in self.dropped or len(self.dropped) >= self._records_max
            if not is_counted and self._reserve(DROPPED_BYTES):
                self.dropped.add(key_hash)
            return False
        self.instances[key] = Instance(label, service_type)
        return True

    def _take_room(self, label: str) -> bool:
        """Take one instance from the pool. Returns False if the instance must not be stored."""
        if self._instance_pool.take(self.announcer, 1):
            self._pooled += 1
            return True
        # Instances with priority are stored beyond the pool, as far as memory allows.
        return self.has_priority(label) and len(self.instances) < PRINTERS_PER_ANNOUNCER_MAX

    def _add_address(self, name: str, record: AddressRecord) -> bool:
        addresses = self.hosts.get(name, {})
        if record.address in addresses or len(addresses) >= ADDRESSES_PER_HOST_MAX:
            return False
        return self._keep(self.hosts, name, {**addresses, record.address: None})

    def _keep(self, table: dict[str, Value], key: str, value: Value) -> bool:
        """Store a value. It replaces an older one, as the cache-flush bit of these records demands.

        Returns whether the value is new and was stored.
        """
        old_value = table.get(key)
        if old_value == value or (old_value is None and len(table) >= self._records_max):
            return False
        if old_value is not None:
            self._reserve(-_cost(key, table.pop(key)))
        if not self._reserve(_cost(key, value)):
            return False
        table[key] = value
        return True

    def _reserve(self, amount_bytes: int) -> bool:
        """Take memory from the pool, or return it if ``amount_bytes`` is negative.

        Returns False if the pool has too little.
        """
        if amount_bytes < 0:
            self._quota.memory.give_back(self.announcer, -amount_bytes)
        elif not self._quota.memory.take(self.announcer, amount_bytes):
            self.dropped_records += 1
            return False
        self.size_bytes += amount_bytes
        return True


def _cost(key: str, value: object) -> int:
    """Estimate the memory of a record, in bytes."""
    length = len(value) if isinstance(value, str | bytes) else NAME_MAX
    return _RECORD_BYTES + 2 * len(key) + length


def service_type_of(name: str) -> str | None:
    """Return ``_ipp._tcp`` for ``_ipp._tcp.local``; None if the name is not a service type."""
    service, _, protocol = name.removesuffix(_DOMAIN).partition(".")
    is_type = service.startswith("_") and protocol in ("_tcp", "_udp") and name.endswith(_DOMAIN)
    return f"{service}.{protocol}" if is_type else None


def parse_txt(text: bytes) -> tuple[tuple[str, str], ...]:
    """Parse the ``key=value`` strings of a TXT record.

    If a key occurs several times, the first value counts (RFC 6763, section 6.4). A string that is
    longer than the rest of the record or has no key is left out. Never raises.
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
