"""Resolves where the print system sends a job now: an address and a port, or why that fails.

No I/O: host names were resolved before (`collectors/network/printers/host_names.py`). mDNS names
and DNS-SD services are resolved here from the announcements, as CUPS does: a service by its
instance name and type. A UUID in the device URI only excludes services with a different UUID.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from collectors.network.matching.devices import DeviceIndex, host_names, service_names
from collectors.network.matching.identity import mac_in_address
from collectors.network.mdns.description import PRINT_SERVICES
from collectors.network.observations import (
    KnownPrinter,
    MdnsService,
    Observations,
    is_resolved_by_mdns,
)
from collectors.shared.addresses import is_mdns_name, numeric_order

_IPP = ("_ipp._tcp", "_ipps._tcp")

Problem = Literal["", "host name", "mDNS name", "service", "type", "UUID", "MAC", "nothing"]
"""What has no match on the network: a name, service, UUID or MAC of the printer's setup.

``type``: the service is announced only with types that the print system does not use. ``nothing``:
the setup has no name, UUID or MAC. "" means that there is no problem.
"""


@dataclass(frozen=True, slots=True)
class Destination:
    """The addresses and ports to which the print system connects.

    A port is None if the setup names none. With ``is_one_of``, the print system takes any one of
    the addresses; otherwise it tries all of them. ``problem`` is the reason why there are no
    addresses. ``announced_address`` is that of a service that has the printer's name but is not
    usable.
    """

    endpoints: tuple[tuple[str, int | None], ...] = ()
    is_one_of: bool = False
    problem: Problem = ""
    announced_address: str = ""


def with_destinations(
    known: Sequence[KnownPrinter], observed: Observations
) -> tuple[KnownPrinter, ...]:
    """Return the printers with the addresses at which to contact them.

    A printer that mDNS resolves is replaced by one copy for each of its addresses and ports. IPv6
    addresses are left out if there are IPv4 addresses. Other printers are returned as is.
    """
    directory = Directory(observed, DeviceIndex(()))
    printers: list[KnownPrinter] = []
    for printer in known:
        endpoints = directory.resolve(printer).endpoints if is_resolved_by_mdns(printer) else ()
        endpoints = tuple(e for e in endpoints if ":" not in e[0]) or endpoints
        printers += [replace(printer, addresses=(a,), port=port) for a, port in endpoints]
        if not endpoints:
            printers.append(printer)
    return tuple(printers)


class Directory:
    """The host names that were observed, and the services that mDNS announces."""

    def __init__(self, observed: Observations, index: DeviceIndex) -> None:
        self._index = index
        self._addresses: dict[str, dict[str, None]] = defaultdict(dict)
        self._services: dict[str, dict[MdnsService, None]] = defaultdict(dict)
        for host in observed.hosts.values():
            for service in host.services:
                for address in service.addresses:
                    self._addresses[_plain_host_name(service.hostname)][address] = None
                for name in service_names(service.instance):
                    self._services[name][service] = None
            self._addresses[_plain_host_name(host.hostname or "")][host.address] = None
        for port in observed.ports.values():
            for name in port.hostnames:
                self._addresses[_plain_host_name(name)][port.address] = None

    def resolve(self, printer: KnownPrinter) -> Destination:
        if printer.addresses:
            return self._destination((address, printer.port) for address in printer.addresses)
        host = printer.host or ""
        if is_mdns_name(host) and (addresses := self._addresses.get(_plain_host_name(host))):
            return self._destination(
                (a, printer.port) for a in sorted(addresses, key=numeric_order)
            )
        if printer.dns_sd_name:
            return self._resolve_service(printer, printer.dns_sd_name)
        if host:
            return Destination(problem="mDNS name" if is_mdns_name(host) else "host name")
        return self._resolve_identity(printer)

    def _destination(
        self, endpoints: Iterable[tuple[str, int | None]], *, is_one_of: bool = False
    ) -> Destination:
        """Return a destination, without link-local IPv6 addresses if there are other addresses."""
        distinct = tuple(dict.fromkeys(endpoints))
        usable = tuple((a, port) for a, port in distinct if not a.lower().startswith("fe80:"))
        endpoints = usable or ((self._address_to_contact(a), port) for a, port in distinct)
        return Destination(tuple(dict.fromkeys(endpoints)), is_one_of)

    def _address_to_contact(self, address: str) -> str:
        """Return the address to contact instead of a link-local IPv6 address.

        The scan does not contact link-local IPv6 addresses, so another address of the same device
        is returned. If no other address is known, ``address`` itself is returned.
        """
        if device := self._index.at(address):
            return device.address
        devices = self._index.having("mac_addresses", mac_in_address(address))
        alive = [device for device in devices if device.is_alive] or devices
        return alive[0].address if len(alive) == 1 else address

    def _resolve_service(self, printer: KnownPrinter, name: str) -> Destination:
        services = tuple(self._services.get(name.lower(), ()))
        if not services:
            return Destination(problem="service")
        kind = printer.dns_sd_type
        announced_address = next((a for s in services for a in s.addresses), "")
        if kind is None:
            # A queue of HPLIP has a port, and accepts any print service. A queue of cups-browsed
            # has no port, and uses IPP.
            types = PRINT_SERVICES if printer.port else _IPP
            usable = [service for service in services if service.type in types]
        else:
            usable = [
                service
                for service in services
                if service.type == kind and service.instance.lower() == name.lower()
            ]
        matching = [e for e in usable if e.uuid in (None, printer.uuid) or not printer.uuid]
        endpoints = [(a, printer.port or e.port) for e in matching if e.port for a in e.addresses]
        if endpoints:
            hosts = {service.hostname.lower() for service in matching}
            is_one_of = len(hosts) > 1 or "" in hosts
            endpoints.sort(key=lambda endpoint: numeric_order(endpoint[0]))
            return self._destination(endpoints, is_one_of=is_one_of)
        problem: Problem = "UUID" if usable else "type"
        if matching:
            problem = "service"  # it has no address or no port
        return Destination(problem=problem, announced_address=announced_address)

    def _resolve_identity(self, printer: KnownPrinter) -> Destination:
        devices = self._index.having("mac_addresses", printer.mac_address)
        if not printer.mac_address:
            devices = self._index.having("uuids", printer.uuid)
        if devices:
            return self._destination(
                [(device.address, printer.port) for device in devices], is_one_of=True
            )
        problem: Problem = "UUID" if printer.uuid else "nothing"
        return Destination(problem="MAC" if printer.mac_address else problem)


def _plain_host_name(hostname: str) -> str:
    return host_names(hostname)[0]
