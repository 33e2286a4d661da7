"""Hosts and endpoints out of everything that was seen. Pure."""

import ipaddress
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from collectors.contract import Endpoint, Host, HostSource, Service
from collectors.network.fair_share import in_turns
from collectors.network.host.local_network import LocalInterface
from collectors.network.matching.correlate import PRINT_SERVICES
from collectors.network.observations import (
    HostName,
    Identification,
    MdnsService,
    PrinterMatches,
)
from collectors.network.scan.port_names import port_name
from collectors.network.scan.scan import ScannedHost
from collectors.shared.addresses import PRINT_PORTS, is_loopback

ENDPOINTS_AT_ONCE = 32
"""Endpoints of one device that come before those of others that are worth less."""

LONG_LIST = 256
"""A list that is longer will be cut: what was seen then comes before what was only told."""

_SOURCES: tuple[HostSource, ...] = ("local", "gateway", "mdns", "tcp")


@dataclass(frozen=True, slots=True)
class Sighted:
    """All that the sources saw. ``macs`` is the neighbour table, for hosts the scan did not try,
    ``announcers`` tells who announced an address.
    """

    interfaces: Sequence[LocalInterface] = ()
    scanned: Sequence[ScannedHost] = ()
    services: Sequence[MdnsService] = ()
    hostnames: Sequence[HostName] = ()
    identifications: Sequence[Identification] = ()
    macs: Mapping[str, str] = field(default_factory=dict)
    matches: PrinterMatches = field(default_factory=PrinterMatches)
    announcers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Place:
    """What is known of one address while it is put together."""

    address: str
    sources: set[HostSource] = field(default_factory=set)
    services: list[MdnsService] = field(default_factory=list)
    scanned: ScannedHost | None = None
    interface_name: str | None = None
    hostname: str | None = None
    mac_address: str | None = None


def announced_addresses(service: MdnsService) -> tuple[str, ...]:
    """Return the addresses under which a service is listed: IPv4, else the best IPv6 one."""
    if ipv4 := tuple(address for address in service.addresses if ":" not in address):
        return ipv4
    ranked = sorted(service.addresses, key=lambda address: address.startswith("fe80:"))
    return tuple(ranked[:1])


def assemble_hosts(sighted: Sighted) -> tuple[Host, ...]:
    """Return one host per address: this machine, the gateways, then by address."""
    return tuple(map(_host, _places(sighted)))


def assemble_endpoints(sighted: Sighted) -> tuple[Endpoint, ...]:
    """Return one endpoint per address and port, the most worth keeping first."""
    known = {(i.address, i.port): i for i in sighted.identifications}
    matched = {(m.address, m.port): m.printer_ids for m in sighted.matches.endpoints}
    endpoints: list[Endpoint] = []
    announced_printers: set[tuple[str, int]] = set()
    for place in _places(sighted):
        for port, services in _ports(place).items():
            key = (place.address, port)
            if any(service.type in PRINT_SERVICES for service in services):
                announced_printers.add(key)
            endpoints.append(_endpoint(place, port, services, known.get(key), matched.get(key)))
    return by_worth(endpoints, announced_printers, sighted.announcers)


def worth_keeping(hosts: Sequence[Host], sighted: Sighted, most: int) -> tuple[Host, ...]:
    """Return the hosts that are kept where there are too many, in the order given: those that
    were seen before those that somebody told of, and of the latter as many of each announcer."""
    if len(hosts) <= most:
        return tuple(hosts)
    matched = {match.address for match in sighted.matches.endpoints}

    def rank(host: Host) -> int:
        if {"local", "gateway"} & set(host.sources) or host.address in matched:
            return 0
        return 1 if "tcp" in host.sources else 2

    told = in_turns((sighted.announcers.get(h.address, h.address), h.address) for h in hosts)
    turns = {address: turn for turn, address in enumerate(told)}
    best = sorted(hosts, key=lambda h: (rank(h), turns[h.address] if rank(h) > 1 else 0))
    kept = {host.address for host in best[:most]}
    return tuple(host for host in hosts if host.address in kept)


def by_worth(
    endpoints: Iterable[Endpoint],
    announced_printers: Iterable[tuple[str, int]] = (),
    announcers: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Endpoint, ...]:
    """Order endpoints best first: matched printers, printers, announced ones, the rest.

    Whoever must shorten the list cuts its tail, so what one device has above ``ENDPOINTS_AT_ONCE``
    comes after what the others have. ``announcers`` tells who announced an address.
    """
    printers = frozenset(announced_printers)
    endpoints = tuple(endpoints)
    is_long = len(endpoints) > LONG_LIST

    def worth(endpoint: Endpoint) -> tuple[int, int, int, int]:
        is_printer = endpoint.port in PRINT_PORTS or (endpoint.address, endpoint.port) in printers
        if endpoint.matched_printer_ids:
            rank = 0
        elif is_printer:
            rank = 1
        else:
            rank = 2 if "mdns" in endpoint.discovered_by else 3
        if is_long and endpoint.status != "reachable" and not endpoint.matched_printer_ids:
            rank += 4  # anybody may announce a port of a device: what answers comes first
        return (rank, *_numeric(endpoint.address), endpoint.port)

    counts: Counter[str] = Counter()

    def turn(endpoint: Endpoint) -> int:
        """Return how often its device has had all that it may have at once."""
        if endpoint.matched_printer_ids:
            return 0
        if is_long and endpoint.status != "reachable" and endpoint.mac_address is None:
            return LONG_LIST  # nobody was seen there: anybody may have announced it
        device = endpoint.mac_address or announcers.get(endpoint.address, endpoint.address)
        counts[device] += 1
        return (counts[device] - 1) // ENDPOINTS_AT_ONCE

    # The sort is stable: inside a turn the order stays that of their worth.
    return tuple(sorted(sorted(endpoints, key=worth), key=turn))


def _places(sighted: Sighted) -> list[_Place]:
    places: dict[str, _Place] = {}

    def at(address: str) -> _Place:
        return places.setdefault(address, _Place(address))

    for host in sighted.scanned:
        place = at(host.address)
        place.scanned, place.interface_name = host, host.interface_name
        place.mac_address = host.mac_address
        place.sources.add("tcp")
    for service in sighted.services:
        for address in announced_addresses(service):
            place = at(address)
            place.services.append(service)
            place.sources.add("mdns")
            place.interface_name = place.interface_name or service.interface_name or None
            if not service.is_hearsay:
                place.hostname = place.hostname or service.hostname or None
    _add_machine(sighted, places)
    _add_names(sighted, places)
    for place in places.values():
        if place.scanned is None and place.mac_address is None:
            place.mac_address = sighted.macs.get(place.address)
    return sorted(places.values(), key=_place_order)


def _add_names(sighted: Sighted, places: dict[str, _Place]) -> None:
    """Add the names that hosts did not announce themselves: told when asked, or by others."""
    for name in sighted.hostnames:
        if name.address in places:
            places[name.address].hostname = places[name.address].hostname or name.hostname
    for service in sighted.services:
        for address in announced_addresses(service):
            places[address].hostname = places[address].hostname or service.hostname or None


def _add_machine(sighted: Sighted, places: dict[str, _Place]) -> None:
    """Add what the machine knows of itself: its own addresses and its gateways."""
    for local in sighted.interfaces:
        for address in local.interface.addresses:
            if address.family == "ipv4" or address.address in places:
                place = places.setdefault(address.address, _Place(address.address))
                place.sources.add("local")
                place.interface_name = local.interface.name
                place.mac_address = local.interface.mac_address
        for gateway in local.interface.gateways:
            place = places.setdefault(gateway, _Place(gateway))
            place.sources.add("gateway")
            place.interface_name = place.interface_name or local.interface.name
    for place in places.values():
        if is_loopback(place.address):
            place.sources.add("local")


def _place_order(place: _Place) -> tuple[int, int, int]:
    rank = 0 if "local" in place.sources else 1 if "gateway" in place.sources else 2
    return (rank, *_numeric(place.address))


def _numeric(address: str) -> tuple[int, int]:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return (9, 0)
    return (parsed.version, int(parsed))


def _host(place: _Place) -> Host:
    scanned = place.scanned
    is_reachable = "local" in place.sources or (scanned is not None and scanned.is_confirmed)
    return Host(
        address=place.address,
        services=_services(place),
        reachability="reachable" if is_reachable else "unknown",
        sources=tuple(source for source in _SOURCES if source in place.sources),
        interface_name=place.interface_name,
        hostname=place.hostname,
        mac_address=place.mac_address,
        latency_ms=scanned.latency_ms if scanned is not None else None,
    )


def _services(place: _Place) -> tuple[Service, ...]:
    """Return announced services, then open ports nobody announced."""
    announced = [
        Service(service.port, "mdns", service.instance or None, service.type, reachable)
        for service in place.services
        for reachable in (_was_reached(place, service.port),)
        if service.port
    ]
    known = {service.port for service in announced}
    found = [
        Service(port, "tcp", port_name(port), reachable=True)
        for port in (place.scanned.open_ports if place.scanned else ())
        if port not in known
    ]
    return tuple(dict.fromkeys((*sorted(announced, key=lambda s: s.port), *found)))


def _was_reached(place: _Place, port: int) -> bool | None:
    if place.scanned is None:
        return None
    if port in place.scanned.open_ports:
        return True
    tried = (*place.scanned.refused_ports, *place.scanned.silent_ports)
    return False if port in tried else None


def _ports(place: _Place) -> dict[int, list[MdnsService]]:
    ports: dict[int, list[MdnsService]] = {}
    for service in place.services:
        if service.port:
            ports.setdefault(service.port, []).append(service)
    for port in place.scanned.open_ports if place.scanned else ():
        ports.setdefault(port, [])
    return ports


def _endpoint(
    place: _Place,
    port: int,
    services: Sequence[MdnsService],
    known: Identification | None,
    printer_ids: tuple[str, ...] | None,
) -> Endpoint:
    is_open = place.scanned is not None and port in place.scanned.open_ports
    instance = next((service.instance for service in services if service.instance), None)
    return Endpoint(
        address=place.address,
        host=place.hostname or place.address,
        port=port,
        label=instance or (known.label if known else None) or port_name(port),
        discovered_by=(*(("mdns",) if services else ()), *(("scan",) if is_open else ())),
        status="reachable" if is_open else "discovered",
        model=known.model if known else None,
        mac_address=place.mac_address,
        matched_printer_ids=printer_ids or (),
    )
