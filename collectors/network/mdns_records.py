"""The records one interface's neighbours announced, put together into service instances."""

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from collectors.network.evidence import MdnsService
from collectors.network.mdns_wire import (
    AddressRecord,
    PointerRecord,
    Question,
    Record,
    ServiceRecord,
    TextRecord,
)
from collectors.network.text import clean_text, decode_text

ENUMERATION = "_services._dns-sd._udp.local"
TYPES_MAX = 256
ADDRESSES_PER_HOST_MAX = 8
TXT_PAIRS_MAX = 64
TXT_VALUE_MAX = 1024
NAME_MAX = 255
_DOMAIN = ".local"
_REVERSE_DOMAIN = ".arpa"
DROPPED_COUNTED_MAX = 20_000


Value = TypeVar("Value")


@dataclass(slots=True)
class Allowance:
    """How many service instances may still be kept, over all interfaces; the rest is counted."""

    left: int
    dropped: set[str] = field(default_factory=set)

    def take(self, key: str) -> bool:
        if self.left > 0:
            self.left -= 1
            return True
        if len(self.dropped) < DROPPED_COUNTED_MAX:
            self.dropped.add(key)
        return False


@dataclass(frozen=True, slots=True)
class _Instance:
    """``type`` is like ``_ipp._tcp``; ``label`` is the name before it, as sent."""

    label: str
    type: str


class RecordBook:
    """What one interface heard. Every store is bounded; names are compared without case."""

    def __init__(self, interface_name: str, allowance: Allowance) -> None:
        self.interface_name = interface_name
        self.types: dict[str, None] = {}
        self.reverse_names: dict[str, str] = {}
        self._allowance = allowance
        self._records_max = 2 * allowance.left + 64
        self._instances: dict[str, _Instance] = {}
        self._places: dict[str, ServiceRecord] = {}
        self._texts: dict[str, bytes] = {}
        self._addresses: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._instances)

    def add(self, records: Iterable[Record]) -> bool:
        """Keep the records; True when they told anything new."""
        news = [self._add(record) for record in records]
        return any(news)

    def instances(self, service_type: str) -> Iterator[tuple[str, ...]]:
        """Yield the names, in labels, of the instances of a type (``_ipp._tcp``)."""
        for instance in self._instances.values():
            if instance.type == service_type:
                yield _labels(instance)

    def missing(self) -> Iterator[Question]:
        """Yield the questions whose answers the known instances still lack."""
        hosts: dict[str, str] = {}
        for key, instance in self._instances.items():
            if "\ufffd" in instance.label:
                continue  # the bytes sent are not known any more, so nobody would answer
            place = self._places.get(key)
            if place is None:
                yield Question(_labels(instance), "SRV")
            elif place.host.lower() not in self._addresses:
                hosts[place.host.lower()] = place.host
            if key not in self._texts:
                yield Question(_labels(instance), "TXT")
        for host in hosts.values():
            labels = tuple(host.split("."))
            yield Question(labels, "A")
            yield Question(labels, "AAAA")

    def services(self) -> Iterator[MdnsService]:
        """Yield the instances with all that is known about them, cleaned and bounded."""
        for key, instance in self._instances.items():
            place = self._places.get(key)
            host = place.host if place else ""
            yield MdnsService(
                instance=clean_text(instance.label, NAME_MAX),
                type=clean_text(instance.type, NAME_MAX),
                hostname=clean_text(host, NAME_MAX),
                addresses=_in_order(self._addresses.get(host.lower(), {})),
                port=place.port if place else 0,
                txt=parse_txt(self._texts.get(key, b"")),
                interface_name=self.interface_name,
            )

    def _add(self, record: Record) -> bool:
        if isinstance(record, PointerRecord):
            return self._add_pointer(record)
        if isinstance(record, ServiceRecord):
            return self._keep(self._places, record.name.lower(), record)
        if isinstance(record, TextRecord):
            return self._keep(self._texts, record.name.lower(), record.text)
        return self._add_address(record)

    def _add_pointer(self, record: PointerRecord) -> bool:
        name = record.name.lower()
        if name == ENUMERATION:
            return self._add_type(record.target)
        if name.endswith(_REVERSE_DOMAIN):
            return self._keep(self.reverse_names, name, clean_text(record.target, NAME_MAX))
        service_type = service_type_of(name)
        suffix = "." + name
        key = record.target.lower()
        if service_type is None or not key.endswith(suffix) or key in self._instances:
            return False
        if not self._allowance.take(key):
            return False
        self._instances[key] = _Instance(record.target[: -len(suffix)], service_type)
        return True

    def _add_type(self, target: str) -> bool:
        service_type = service_type_of(target.lower())
        if service_type is None or service_type in self.types or len(self.types) >= TYPES_MAX:
            return False
        self.types[service_type] = None
        return True

    def _add_address(self, record: AddressRecord) -> bool:
        name = record.name.lower()
        if name not in self._addresses and len(self._addresses) >= self._records_max:
            return False
        addresses = self._addresses.setdefault(name, {})
        if record.address in addresses or len(addresses) >= ADDRESSES_PER_HOST_MAX:
            return False
        addresses[record.address] = None
        return True

    def _keep(self, store: dict[str, Value], key: str, value: Value) -> bool:
        """Keep the newest value, as the cache-flush bit of these record types asks for."""
        if key not in store and len(store) >= self._records_max:
            return False
        is_new = store.get(key) != value
        store[key] = value
        return is_new


def service_type_of(name: str) -> str | None:
    """Return ``_ipp._tcp`` for ``_ipp._tcp.local``; None for a name that is no service type."""
    labels = name.removesuffix(_DOMAIN).split(".")
    is_type = len(labels) == 2 and labels[0].startswith("_") and labels[1] in ("_tcp", "_udp")  # noqa: PLR2004 - service and protocol
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


def _in_order(addresses: Iterable[str]) -> tuple[str, ...]:
    """Order addresses by how useful they are to a person: IPv4, IPv6, IPv6 of the link only."""
    parsed = (ipaddress.ip_address(each) for each in addresses)
    ordered = sorted(parsed, key=lambda each: (each.version, each.is_link_local))
    return tuple(str(each) for each in ordered)
