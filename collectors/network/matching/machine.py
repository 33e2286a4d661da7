"""Finds problems of this machine and its network that make printers unreachable. No I/O."""

import ipaddress
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network

from collectors.network.matching.symptoms import MachineSymptoms
from collectors.network.observations import SLOW_LOOKUP_S, KnownPrinter, Observations
from collectors.shared.addresses import LINK_LOCAL, network_of, parse_networks
from collectors.shared.host.local_network import LocalInterface, LocalNetwork

_HOST_ROUTE = 32


def find_machine_symptoms(
    local: LocalNetwork,
    known: Sequence[KnownPrinter],
    observed: Observations,
    unicast_only: Sequence[str] = (),
) -> MachineSymptoms:
    """Return the problems. ``unicast_only`` are the interfaces on which hosts answer mDNS only by
    unicast."""
    shared_by, shared_network = _find_shared_network(local)
    isolated_on, isolated_network = next(_isolated_networks(local, known, observed), ("", ""))
    lost_gateway, lost_on = next(_lost_gateways(local), ("", ""))
    lookup_s = max((printer.lookup_s for printer in known if printer.addresses), default=0.0)
    return MachineSymptoms(
        link_local=_link_local_interfaces(local),
        shared_by=shared_by,
        shared_network=shared_network,
        isolated_on=isolated_on,
        isolated_network=isolated_network,
        unicast_only=tuple(unicast_only),
        lost_gateway=lost_gateway,
        lost_on=lost_on,
        slow_lookup_s=lookup_s if lookup_s >= SLOW_LOOKUP_S else 0.0,
    )


def _link_local_interfaces(local: LocalNetwork) -> tuple[str, ...]:
    """Return the machine's IPv4 interfaces if all of its IPv4 addresses are self-assigned."""
    addresses = [
        (interface, address) for interface in local.in_use for address, _ in _networks(interface)
    ]
    if any(address not in LINK_LOCAL for _, address in addresses):
        return ()
    return tuple(dict.fromkeys(interface.interface.name for interface, _ in addresses))


def _find_shared_network(local: LocalNetwork) -> tuple[tuple[str, ...], str]:
    """Return two interfaces with addresses in one network, and the network.

    If there are no such interfaces, returns an empty tuple and an empty text.
    """
    first: dict[IPv4Network, str] = {}
    for interface in local.in_use:
        for _, network in _networks(interface):
            if interface.is_point_to_point or network.prefixlen == _HOST_ROUTE:
                continue
            for other_network, name in first.items():
                if other_network.overlaps(network) and name != interface.interface.name:
                    smaller = max(other_network, network, key=lambda n: n.prefixlen)
                    return (name, interface.interface.name), str(smaller)
            if network != LINK_LOCAL:
                first.setdefault(network, interface.interface.name)
    return (), ""


def _isolated_networks(
    local: LocalNetwork, known: Sequence[KnownPrinter], observed: Observations
) -> Iterator[tuple[str, str]]:
    """Yield each Wi-Fi interface on which only the gateway answers, and its network.

    The whole network must have been scanned, and a printer must be set up with an address in it.
    """
    scanned_networks = parse_networks(observed.scanned_networks)
    confirmed_addresses = [
        a for a, h in observed.hosts.items() if h.scanned and h.scanned.is_confirmed
    ]
    answering = {
        a
        for a in map(ipaddress.ip_address, confirmed_addresses)
        if str(a) not in local.own_addresses
    }
    printer_addresses = {
        ipaddress.ip_address(a.partition("%")[0]) for p in known for a in p.addresses
    }
    for interface in local.in_use:
        gateways = {ipaddress.ip_address(gateway) for gateway in interface.interface.gateways}
        for _, network in _networks(interface) if interface.is_wireless else ():
            seen_addresses = {address for address in answering if address in network}
            is_scanned = any(n.version == 4 and network.subnet_of(n) for n in scanned_networks)
            has_printer = any(address in network for address in printer_addresses - gateways)
            if is_scanned and has_printer and seen_addresses and seen_addresses <= gateways:
                yield interface.interface.name, str(network)


def _lost_gateways(local: LocalNetwork) -> Iterator[tuple[str, str]]:
    """Yield each gateway that is outside of its interface's networks, and the interface."""
    for interface in local.in_use:
        networks = [
            network for _, network in _networks(interface) if network.prefixlen < _HOST_ROUTE
        ]
        if interface.is_point_to_point or not networks:
            continue
        for gateway in interface.interface.gateways:
            gateway_address = ipaddress.ip_address(gateway)
            if gateway_address.version == 4 and not any(
                gateway_address in network for network in networks
            ):
                yield gateway, interface.interface.name


def _networks(local: LocalInterface) -> Iterator[tuple[IPv4Address, IPv4Network]]:
    """Yield each IPv4 address of an interface, and the network of the address."""
    for address in local.interface.addresses:
        network = network_of(address)
        if isinstance(network, IPv4Network):
            yield IPv4Address(address.address), network
