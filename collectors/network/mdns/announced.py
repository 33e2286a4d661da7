"""Chooses the announced services to list. No I/O.

Any host on a link may announce any service at any address. Therefore these rules apply:

- A host's announcement at an address of another device is ignored in two cases: that device itself
  announces a service on the same port, or any other device announces the same service at an address
  of its own.
- The number of services of one device is limited, so that they never displace the services of
  another device. Devices are identified by their MACs. If a host also forges MACs, only the limit
  of all services together applies to it.
- If there are too many services, services that devices announce at other devices' addresses are cut
  first. Services that identify this machine's printers are cut last.
"""

import ipaddress
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from collectors.contract import LearnedPrinter
from collectors.network.fair_share import in_turns
from collectors.network.matching.devices import service_names
from collectors.network.matching.identity import normal_uuid
from collectors.network.observations import (
    KnownPrinter,
    MdnsService,
    PrinterIdentifiers,
    is_resolved_by_mdns,
)
from collectors.shared.addresses import Network, is_in_networks, is_outside
from collectors.shared.arp.proxy_arp import MacCensus

SERVICES_PER_HOST_MAX = 64
"""The most services that are listed at one address."""
SERVICES_PER_ANNOUNCER_MAX = 256
"""This is enough for print servers, which announce three services for each of their queues."""
HOSTS_PER_ANNOUNCER_MAX = 64
"""The most addresses at which one announcer's services are listed. A router may relay the services
of a whole network."""
LISTED_MAX = 4096
"""The most pairs of a service and an address, of all announcers together."""
ANNOUNCERS_NAMED_MAX = 8
"""The most announcers that the report names for each reason why services are not listed."""
NO_HOST = "no host"

_Pair = tuple[int, str]  # the number of a service, and one of its addresses


class LinkLayer:
    """Maps addresses to devices and to announcers.

    ``macs`` maps each address that answered ARP to its MAC. ``unanswered`` are the addresses that
    did not answer ARP. ``networks`` are the networks of this machine's interfaces.
    """

    def __init__(
        self,
        macs: Mapping[str, str] = MappingProxyType({}),
        unanswered: Collection[str] = (),
        networks: Sequence[Network] = (),
    ) -> None:
        self.networks = networks
        self.macs = macs
        self._unanswered = unanswered
        self._census = MacCensus()
        for address, mac in macs.items():
            self._census.add(mac, address)

    def device(self, address: str) -> str:
        """Return the device of an address: its MAC, or the address itself.

        The address stands for the device if its MAC is not known or belongs to a router with proxy
        ARP.
        """
        mac = self.macs.get(address)
        return address if mac is None or self._census.is_proxy(mac) else mac

    def announcer(self, address: str) -> str:
        """Return the announcer of an address: its MAC, or the address if its MAC is not known.

        The addresses that do not answer ARP, and those outside of this machine's networks, are all
        one announcer: `NO_HOST`.
        """
        if address in self._unanswered or is_outside(address, self.networks):
            return NO_HOST
        return self.macs.get(address, address)

    def describe(self, sources: Sequence[str]) -> str:
        """Describe the announcer that announced from the addresses ``sources``.

        For example: ``192.168.1.66 (MAC 02:…) and 3 more of its addresses``.
        """
        if self.announcer(sources[0]) == NO_HOST:
            if len(sources) == 1:
                return f"{sources[0]}, where no host answers ARP,"
            return f"{len(sources):,} addresses at which no host answers ARP, such as {sources[0]},"
        mac = self.macs.get(sources[0])
        where = sources[0] if mac is None else f"{sources[0]} (MAC {mac})"
        others = len(sources) - 1
        return f"{where} and {others:,} more of its addresses" if others else where


@dataclass(frozen=True, slots=True)
class ServiceSelection:
    """The services to list, each with only the addresses at which it is listed.

    ``limitations`` describe which services are not listed. ``announcers`` maps each address to the
    device that announced a service there, in the form of `LinkLayer.announcer`. ``is_cut``: some
    services are not listed because of a limit.
    """

    services: tuple[MdnsService, ...] = ()
    limitations: tuple[str, ...] = ()
    announcers: Mapping[str, str] = field(default_factory=dict)
    is_cut: bool = False


def identifiers_of(printers: Sequence[KnownPrinter]) -> PrinterIdentifiers:
    """Return the names and identities by which announcements of these printers are recognised."""
    names = (name for p in printers for name in (p.dns_sd_name, p.name) if name)
    known: list[KnownPrinter | LearnedPrinter] = [*printers]
    known += (printer.learned for printer in printers if printer.learned)
    return PrinterIdentifiers(
        has_mdns_name=any(is_resolved_by_mdns(printer) for printer in printers),
        names=frozenset(form for name in names for form in service_names(name)),
        addresses=frozenset(address for p in printers for address in p.addresses),
        uuids=frozenset(identity.uuid for identity in known if identity.uuid),
        macs=frozenset(identity.mac_address for identity in known if identity.mac_address),
    )


def choose_services(
    services: Sequence[MdnsService], link: LinkLayer, identifiers: PrinterIdentifiers
) -> ServiceSelection:
    """Choose the services to list, and the addresses at which each of them is listed."""
    believed, disputed = _believed(services, link)
    listing = _Listing(believed, link, identifiers)
    kept = [
        part
        for number, service in enumerate(believed)
        for part in _parts(service, listing.addresses(number), link)
    ]
    kept.sort(key=lambda service: service.is_hearsay)
    announcers: dict[str, str] = {}
    for service in kept:
        for address in service.addresses:
            announcers.setdefault(address, link.announcer(service.announcer or address))
    return ServiceSelection(
        services=tuple(kept),
        limitations=(*listing.limitations(), *_disputes(disputed, link)),
        announcers=announcers,
        is_cut=bool(listing.cut),
    )


def _believed(
    services: Sequence[MdnsService], link: LinkLayer
) -> tuple[list[MdnsService], Counter[str]]:
    """Return the services without their false and their unreachable addresses (`_elsewhere`).

    Also returns the number of services that had false addresses, by the address from which these
    services were announced. Only an address that does not belong to the announcer can be false. It
    is false if the device that has this address announces a service on the same port. It is also
    false if any other device announces the same service at an address of its own.
    """
    own_ports: set[tuple[str, int]] = set()
    owners: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for service in services:
        for address in _own_addresses(service, link):
            own_ports.add((address, service.port))
            owners[_key(service)].add(link.device(service.announcer))
    believed: list[MdnsService] = []
    disputed: Counter[str] = Counter()
    for service in services:
        own_addresses = _own_addresses(service, link)
        others = (
            [a for a in service.addresses if a not in own_addresses] if service.announcer else []
        )
        has_other_owner = bool(owners[_key(service)] - {link.device(service.announcer)})
        left_out = {a for a in others if has_other_owner or (a, service.port) in own_ports}
        disputed[service.announcer] += bool(left_out)
        left_out |= _elsewhere(others, service.addresses, link.networks)
        addresses = tuple(a for a in service.addresses if a not in left_out)
        if addresses or not service.addresses:
            believed.append(replace(service, addresses=addresses) if left_out else service)
    return believed, disputed


def _own_addresses(service: MdnsService, link: LinkLayer) -> tuple[str, ...]:
    device = link.device(service.announcer)
    return tuple(a for a in service.addresses if link.device(a) == device)


def _parts(service: MdnsService, listed: Collection[str], link: LinkLayer) -> Iterator[MdnsService]:
    """Yield a service at its announcer's own addresses, and as hearsay at all other addresses.

    Only the addresses in ``listed`` are kept.
    """
    own_addresses = _own_addresses(service, link) if service.announcer else service.addresses
    kept = tuple(address for address in own_addresses if address in listed)
    if kept or not service.addresses:
        yield replace(service, addresses=kept)
    others = tuple(a for a in service.addresses if a in listed and a not in own_addresses)
    if others:
        yield replace(service, addresses=others, is_hearsay=True)


def _key(service: MdnsService) -> tuple[str, str]:
    return service.instance.lower(), service.type


def _elsewhere(
    others: Sequence[str], addresses: Sequence[str], networks: Sequence[Network]
) -> set[str]:
    """Return those of ``others`` that are IPv4 addresses outside of this machine's networks.

    ``others`` are those of a service's ``addresses`` that do not belong to its announcer. Usually
    the returned addresses belong to containers and tunnels of the announcing host, and this machine
    cannot reach them. Returns an empty set if the service would have no IPv4 address without them.
    """

    def is_here(address: str) -> bool:
        return ipaddress.ip_address(address).is_link_local or is_in_networks(address, networks)

    far = {address for address in others if ":" not in address and not is_here(address)}
    is_reachable = any(":" not in a and a not in far for a in addresses)
    return far if is_reachable else set()


class _Listing:
    """Chooses the addresses at which each service is listed.

    Services and addresses that identify this machine's printers come first. Services at their
    announcers' own addresses come next, and services at addresses of other hosts (hearsay) come
    last. Within each of these groups, announcers take turns. ``_listed`` counts the listed services
    of each announcer. ``cut`` has the announcers of which not all services are listed, with the
    number of services that they announced. ``_hosts`` maps each announcer to the addresses at which
    its services are listed. ``_listed_at`` counts the services that are listed at each address.
    """

    def __init__(
        self, services: Sequence[MdnsService], link: LinkLayer, identifiers: PrinterIdentifiers
    ) -> None:
        self._services = services
        self._link = link
        self._addresses: defaultdict[int, list[str]] = defaultdict(list)
        self._hosts: defaultdict[str, set[str]] = defaultdict(set)
        self._listed: Counter[str] = Counter()
        self._listed_at: Counter[str] = Counter()
        self._total = 0
        groups: tuple[list[tuple[str, _Pair]], ...] = ([], [], [])
        for number, service in enumerate(services):
            announcer = link.announcer(service.announcer)
            own_addresses = _own_addresses(service, link)
            for address in service.addresses:
                group = groups[1] if address in own_addresses else groups[2]
                if _is_of_printer(service, address, link, identifiers):
                    group = groups[0]
                group.append((announcer, (number, address)))
        for pairs in groups:
            for number, address in in_turns(pairs):
                self._list(number, address)
        # Services without an address are not counted here, so that they do not count as cut.
        announced = Counter(
            link.announcer(service.announcer)
            for service in services
            if service.announcer and service.addresses
        )
        self.cut = Counter({a: n for a, n in announced.items() if n > self._listed[a]})

    def addresses(self, number: int) -> list[str]:
        return self._addresses.get(number, [])

    def limitations(self) -> Iterator[str]:
        ranked = self.cut.most_common()
        for announcer, total in ranked[:ANNOUNCERS_NAMED_MAX]:
            source, listed = self._sources(announcer), self._listed[announcer]
            yield f"{source} announced {total:,} services: {listed:,} are listed"
        if others := dict(ranked[ANNOUNCERS_NAMED_MAX:]):
            listed = sum(self._listed[announcer] for announcer in others)
            total = sum(others.values())
            count = f"{len(others):,} more devices"
            yield f"{count} announced {total:,} services: {listed:,} are listed"

    def _sources(self, announcer: str) -> str:
        sources = {
            s.announcer for s in self._services if self._link.announcer(s.announcer) == announcer
        }
        return self._link.describe(sorted(sources))

    def _list(self, number: int, address: str) -> None:
        service = self._services[number]
        announcer = self._link.announcer(service.announcer)
        if not service.announcer:
            self._addresses[number].append(address)
            return
        is_new = number not in self._addresses
        hosts = self._hosts[announcer]
        if (
            self._total >= LISTED_MAX
            or (is_new and self._listed[announcer] >= SERVICES_PER_ANNOUNCER_MAX)
            or (address not in hosts and len(hosts) >= HOSTS_PER_ANNOUNCER_MAX)
            or self._listed_at[address] >= SERVICES_PER_HOST_MAX
        ):
            return
        hosts.add(address)
        self._listed[announcer] += is_new
        self._listed_at[address] += 1
        self._total += 1
        self._addresses[number].append(address)


def _is_of_printer(
    service: MdnsService, address: str, link: LinkLayer, identifiers: PrinterIdentifiers
) -> bool:
    return (
        address in identifiers.addresses
        or any(form in identifiers.names for form in service_names(service.instance))
        or normal_uuid(dict(service.txt).get("uuid")) in identifiers.uuids
        or link.macs.get(address) in identifiers.macs
    )


def _disputes(disputed: Counter[str], link: LinkLayer) -> Iterator[str]:
    sources: defaultdict[str, list[str]] = defaultdict(list)
    counts: Counter[str] = Counter()
    for source, count in (+disputed).items():
        sources[link.announcer(source)].append(source)
        counts[link.announcer(source)] += count
    for announcer, count in counts.most_common(ANNOUNCERS_NAMED_MAX):
        yield (
            f"{link.describe(sources[announcer])} announced {count:,} services"
            " that other devices contradict: only the announcements of those devices are listed"
        )
