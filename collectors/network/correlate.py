"""Joins the facts of this machine, the scan, mDNS and the queries by host and by port. No I/O.

Printer matching, the list of endpoints and the list of hosts all read the joined observations.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from collectors.contract import HostSource
from collectors.network.matching.identity import real_serial
from collectors.network.mdns.description import PRINT_SERVICES, friendly_name, txt_model
from collectors.network.observations import (
    Evidence,
    HostObservation,
    MdnsService,
    Observations,
    PortObservation,
)
from collectors.network.questions.server_header import parse_product
from collectors.network.scan.scan import PortState, ScannedHost
from collectors.shared.addresses import is_loopback, network_of
from collectors.shared.host.local_network import LocalNetwork

_TXT_STOPPED = "5"  # RFC 8011, section 5.4.11
_THIS_MACHINE_UNKNOWN = LocalNetwork()

Key = tuple[str, int]  # an address and a port


def correlate(
    *,
    local: LocalNetwork = _THIS_MACHINE_UNKNOWN,
    scanned: Sequence[ScannedHost] = (),
    services: Sequence[MdnsService] = (),
    evidence: Sequence[Evidence] = (),
    hostnames: Mapping[str, str] = MappingProxyType({}),
    macs: Mapping[str, str] = MappingProxyType({}),
    announcers: Mapping[str, str] = MappingProxyType({}),
    scanned_networks: Sequence[str] = (),
    attempts: Mapping[Key, tuple[PortState, ...]] = MappingProxyType({}),
) -> Observations:
    """Join the facts of all sources. The observations keep the order of the arguments.

    ``macs`` is the neighbour table. It gives the MACs of hosts that the scan did not try.
    ``announcers`` maps an address to the device that announced it by mDNS.
    """
    join = _Join(local, scanned, macs)
    join.add_services(services, _without_borrowed_uuids(services, evidence, local.own_addresses))
    join.add_answers(evidence, hostnames)
    networks = (network_of(a) for i in local.in_use for a in i.interface.addresses)
    return Observations(
        join.hosts(),
        join.ports(),
        announcers,
        tuple(scanned_networks),
        _distinct(*map(str, networks)),
        attempts,
    )


def announced_addresses(service: MdnsService) -> tuple[str, ...]:
    """Return the addresses under which a service is listed.

    A service is listed under all its IPv4 addresses. If it has none, it is listed under one IPv6
    address, preferably not a link-local one.
    """
    if ipv4 := tuple(address for address in service.addresses if ":" not in address):
        return ipv4
    ranked_addresses = sorted(service.addresses, key=lambda address: address.startswith("fe80:"))
    return tuple(ranked_addresses[:1])


def _without_borrowed_uuids(
    services: Sequence[MdnsService], evidence: Sequence[Evidence], own_addresses: frozenset[str]
) -> tuple[MdnsService, ...]:
    """Leave out hearsay whose UUID a device gives as its own, in an answer or an announcement.

    Hearsay is a service that a host announces at the address of another host. If a device gives the
    UUID of the service as its own, the service is no evidence of the host at that address. A UUID
    that this machine itself gives does not count.
    """
    given_uuids = {answer.uuid for answer in evidence if answer.address not in own_addresses}
    given_uuids |= {
        s.uuid for s in services if not s.is_hearsay and not own_addresses.issuperset(s.addresses)
    }
    given_uuids.discard(None)
    return tuple(s for s in services if not (s.is_hearsay and s.uuid in given_uuids))


class _Join:
    """The facts of every source, by address and by port."""

    def __init__(
        self, local: LocalNetwork, scanned: Sequence[ScannedHost], macs: Mapping[str, str]
    ) -> None:
        self._scanned = {host.address: host for host in scanned}
        self._macs = macs
        self._services_of: defaultdict[str, list[MdnsService]] = defaultdict(list)
        self._services_at: defaultdict[Key, list[MdnsService]] = defaultdict(list)
        self._names: defaultdict[str, list[str]] = defaultdict(list)
        self._answers: defaultdict[Key, list[Evidence]] = defaultdict(list)
        self._answered_names: Mapping[str, str] = {}
        self._models: dict[str, str] = {}
        # If two interfaces have the same gateway, the first interface has the better route to the
        # gateway. The order is reversed, so that the first interface replaces the second interface.
        self._routes = {a: i for i in reversed(local.in_use) for a in i.interface.gateways}
        self._own = {address: i for i in local.in_use for address in i.addresses}

    def add_services(
        self, services: Sequence[MdnsService], convincing: Sequence[MdnsService]
    ) -> None:
        """Add all ``services`` to the hosts, but only the ``convincing`` ones to the ports.

        A service that `_without_borrowed_uuids` leaves out is not convincing.
        """
        for service in services:
            for address in announced_addresses(service):
                self._services_of[address].append(service)
            if service.type == "_device-info._tcp" and not service.is_hearsay:
                # This service describes the whole device. It usually has no port.
                addresses = service.addresses or (service.announcer,)
                if model := txt_model(service):
                    self._models |= dict.fromkeys(addresses, model)
        for service in convincing:
            for address in service.addresses:
                self._names[address].append(service.hostname)
                if service.port:
                    self._services_at[address, service.port].append(service)

    def add_answers(self, evidence: Sequence[Evidence], hostnames: Mapping[str, str]) -> None:
        for answer in evidence:
            self._answers[answer.address, answer.port].append(answer)
        self._answered_names = hostnames
        for address, name in hostnames.items():
            self._names[address].append(name)

    def hosts(self) -> dict[str, HostObservation]:
        own_addresses = (address for address in self._own if ":" not in address)
        addresses = dict.fromkeys(
            (*self._scanned, *self._services_of, *own_addresses, *self._routes)
        )
        return {address: self._host(address) for address in addresses}

    def ports(self) -> dict[Key, PortObservation]:
        open_endpoints = (
            (host.address, n) for host in self._scanned.values() for n in host.open_ports
        )
        keys = dict.fromkeys((*open_endpoints, *self._services_at, *self._answers))
        return {key: self._port(*key) for key in keys}

    def _host(self, address: str) -> HostObservation:
        scanned, services = self._scanned.get(address), self._services_of.get(address, [])
        own_interface, route = self._own.get(address), self._routes.get(address)
        mac_address = scanned.mac_address if scanned else None
        if own_interface is not None:
            mac_address = own_interface.interface.mac_address
        return HostObservation(
            address=address,
            sources=tuple(self._sources(address)),
            services=tuple(services),
            scanned=scanned,
            interface_name=_first(
                own_interface.interface.name if own_interface else None,
                scanned.interface_name if scanned else None,
                *(service.interface_name for service in services),
                route.interface.name if route else None,
            ),
            hostname=_first(
                *(service.hostname for service in services if not service.is_hearsay),
                self._answered_names.get(address),
                *(service.hostname for service in services),
            ),
            mac_address=mac_address or (None if scanned else self._macs.get(address)),
            model=self._models.get(address),
        )

    def _sources(self, address: str) -> Iterator[HostSource]:
        if address in self._own or is_loopback(address):
            yield "local"
        if address in self._routes:
            yield "gateway"
        if address in self._services_of:
            yield "mdns"
        if address in self._scanned:
            yield "tcp"

    def _port(self, address: str, port: int) -> PortObservation:
        scanned, answers = self._scanned.get(address), self._answers.get((address, port), [])
        services = self._services_at.get((address, port), [])
        txts = [(service.type, dict(service.txt)) for service in services]
        instances = [service.instance for service in services]
        uuids = _distinct(*(s.uuid for s in services), *(answer.uuid for answer in answers))
        announced_states = (_announced_state(address, port, service) for service in services)
        # An answer with a Server header is from a web page or from CUPS itself, not from a queue.
        of_queues = (*announced_states, *(answer for answer in answers if not answer.server))
        states = [e for e in of_queues if e.state is not None or e.state_reasons]
        if len(uuids) > 1 or (not uuids and len({e.queue for e in of_queues}) > 1):
            states = []  # there are several printers behind the port, so it has no single state
        return PortObservation(
            address=address,
            port=port,
            contact=scanned.contact(port) if scanned else None,
            hostnames=_distinct(*self._names.get(address, ())),
            instances=_distinct(*instances),
            labels=_distinct(
                *map(friendly_name, services), *(text for e in answers for text in _names(e))
            ),
            queues=_distinct(
                *(txt.get("rp", "").strip("/") for kind, txt in txts if kind in PRINT_SERVICES)
            ),
            uuids=uuids,
            answered_uuids=_distinct(*(answer.uuid for answer in answers)),
            serials=_distinct(
                *(real_serial(txt.get("serial") or txt.get("usb_ser")) for _, txt in txts),
                *(real_serial(answer.serial) for answer in answers),
            ),
            models=_distinct(*(answer.make_model for answer in answers), *map(txt_model, services)),
            is_announced=bool(services),
            state=states[-1].state if states else None,
            state_reasons=states[-1].state_reasons if states else (),
            queue_states=tuple(e for e in of_queues if e.is_missing or e.state or e.state_reasons),
        )


def _names(answer: Evidence) -> tuple[str | None, ...]:
    """Return the names that a port gave in its answer, the best one first."""
    model = answer.make_model if answer.server else None  # the model from its Server header
    return answer.name, answer.title, answer.realm, model, parse_product(answer.server)


def _announced_state(address: str, port: int, service: MdnsService) -> Evidence:
    """Return the state in ``printer-state``, which CUPS announces for the queues that it shares."""
    txt = dict(service.txt) if service.type in PRINT_SERVICES and not service.is_hearsay else {}
    is_stopped = txt.get("printer-state") == _TXT_STOPPED
    queue = txt.get("rp", "").strip("/")
    state: Literal["stopped"] | None = "stopped" if is_stopped else None
    return Evidence(address, port, service.uuid, state=state, queue=queue)


def _distinct(*texts: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text))


def _first(*texts: str | None) -> str | None:
    return next((text for text in texts if text), None)
