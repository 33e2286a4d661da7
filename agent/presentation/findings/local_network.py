"""Rules for the network of a network report: connection, gateway, addresses, sources."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from agent.presentation.findings.connectivity import OWN_ADDRESS_FIX, is_routable, is_self_assigned
from agent.presentation.findings.rule import ONCE, NoteRule, ProblemRule, Rule, Values, WarningRule
from agent.presentation.humanize import format_milliseconds
from agent.wire.payloads.network import (
    MapHost,
    MapInterface,
    NetworkMap,
    NetworkPayload,
    SourceFailed,
)

GATEWAY_SLOW_MS: Final = 100

NO_ROUTE: Final = "this machine has no default route"
"""The collector's text in ``unavailable.gateway`` if there is no gateway. Any other text means that
the gateway could not be read."""
_WIRELESS_NAMES: Final = ("wl", "Wi-Fi", "WLAN", "Wireless")
"""First characters of the names of Wi-Fi interfaces on Linux and Windows. On macOS, cable and Wi-Fi
have the same names, such as ``en0``, and the contract has no field for the type. There, a Wi-Fi is
treated like a cable. Application snapshots have the type (`connectivity.py`)."""
_PROXY_ARP: Final = re.compile(r"(\S+) answers ARP for (\d+) addresses \(proxy ARP\)")


def readable_map(payload: NetworkPayload) -> NetworkMap | None:
    """Return the network map if the machine's interfaces could be read."""
    network = payload.network_map
    is_readable = network is not None and network.sources.interfaces.state == "succeeded"
    return network if is_readable else None


def are_gateways_known(payload: NetworkPayload) -> bool:
    return payload.unavailable.gateway in {None, NO_ROUTE}


def _scanned_map(payload: NetworkPayload) -> NetworkMap | None:
    """Return the network map if the local network was scanned completely."""
    network = readable_map(payload)
    if network is None or payload.scope != "local-network":
        return None
    return network if network.sources.scan.state == "succeeded" else None


def _connected_interfaces(network: NetworkMap) -> tuple[MapInterface, ...]:
    """Return the interfaces with an address that is valid beyond their link."""
    return tuple(i for i in network.interfaces if any(is_routable(a.address) for a in i.addresses))


def _disconnected(payload: NetworkPayload) -> tuple[Values, ...]:
    network = readable_map(payload)
    return ONCE if network is not None and not _connected_interfaces(network) else ()


def _self_assigned(payload: NetworkPayload) -> Iterator[tuple[bool, Values]]:
    """Yield the interfaces that only have an address of 169.254.0.0/16.

    The first value is True if the interface may have a cable to a single device, because it is not
    wireless and the machine has another connection.
    """
    network = readable_map(payload)
    if network is None:
        return
    for link in network.interfaces:
        addresses = [address.address for address in link.addresses]
        self_assigned = next(filter(is_self_assigned, addresses), None)
        if self_assigned is not None and not any(map(is_routable, addresses)):
            is_direct = bool(_connected_interfaces(network)) and not link.name.startswith(
                _WIRELESS_NAMES
            )
            yield is_direct, {"interface": link.name, "address": self_assigned}


def _without_dhcp(payload: NetworkPayload) -> Iterator[Values]:
    return (values for is_direct, values in _self_assigned(payload) if not is_direct)


def _direct_cable(payload: NetworkPayload) -> Iterator[Values]:
    return (values for is_direct, values in _self_assigned(payload) if is_direct)


def _without_gateway(payload: NetworkPayload) -> tuple[Values, ...]:
    network = readable_map(payload)
    if network is None or not are_gateways_known(payload) or not _connected_interfaces(network):
        return ()
    return () if any(link.gateways for link in network.interfaces) else ONCE


def _gateways(network: NetworkMap | None) -> tuple[MapHost, ...]:
    return () if network is None else tuple(h for h in network.hosts if "gateway" in h.sources)


def _gateway_unanswered(payload: NetworkPayload) -> Iterator[Values]:
    """Yield gateways that do not answer although other hosts of their link do.

    The other hosts show that the link was scanned and that MAC addresses can be read.
    """
    network = _scanned_map(payload)
    if network is None:
        return
    for gateway in _gateways(network):
        if ":" in gateway.address or _is_present(gateway):  # the scan only tries IPv4 addresses
            continue
        hosts_of_link = [h for h in network.hosts if h.interface_name == gateway.interface_name]
        if any(_is_present(host) and host.mac_address for host in hosts_of_link):
            yield {"gateway": gateway.address}


def _is_present(host: MapHost) -> bool:
    """Return whether the host answered and is not this machine."""
    return "local" not in host.sources and (
        host.reachability == "reachable" or host.mac_address is not None
    )


def _gateway_slow(payload: NetworkPayload) -> Iterator[Values]:
    for host in _gateways(payload.network_map):
        if host.latency_ms is not None and host.latency_ms >= GATEWAY_SLOW_MS:
            yield {"gateway": host.address, "time": format_milliseconds(host.latency_ms)}


def _alone(payload: NetworkPayload) -> Iterator[Values]:
    network = _scanned_map(payload)
    gateways = _gateways(network)
    if network is None or not gateways:
        return
    if all("local" in host.sources or host in gateways for host in network.hosts):
        has_gateway = any(map(_is_present, gateways))
        yield {"host": "host except the gateway" if has_gateway else "host"}


def _same_address(payload: NetworkPayload) -> Iterator[Values]:
    """Yield each address that two interfaces of this machine or two MAC addresses have."""
    network = payload.network_map
    if network is None:
        return
    interface_counts = Counter(
        address
        for link in network.interfaces
        for address in {listed.address for listed in link.addresses}
        if is_routable(address)
    )
    macs: dict[str, dict[str, None]] = {}
    endpoint_macs = [(e.address, e.mac_address) for e in payload.endpoints]
    for address, mac in (*endpoint_macs, *((h.address, h.mac_address) for h in network.hosts)):
        if mac is not None:
            macs.setdefault(address, {})[mac.lower()] = None
    for address, count in interface_counts.items():
        if count > 1:
            yield {"address": address, "by": f"{count} interfaces of this machine"}
    for address, address_macs in macs.items():
        if len(address_macs) > 1 and is_routable(address):
            yield {"address": address, "by": f"the MACs {' and '.join(address_macs)}"}


def _failed_sources(payload: NetworkPayload) -> Iterator[Values]:
    network = payload.network_map
    if network is None:
        return
    for step, source in (
        ("Reading the interfaces", network.sources.interfaces),
        ("Scanning the network", network.sources.scan),
        ("Receiving announcements (mDNS)", network.sources.mdns),
    ):
        if isinstance(source, SourceFailed):
            yield {"step": step, "why": source.reason}


def _arp_proxies(payload: NetworkPayload) -> Iterator[Values]:
    for line in payload.limitations:
        if match := _PROXY_ARP.match(line):
            yield {"mac": match[1], "count": match[2]}


def _cut(payload: NetworkPayload) -> tuple[Values, ...]:
    return ONCE if payload.network_map and payload.network_map.truncated else ()


def _unfinished(payload: NetworkPayload) -> tuple[Values, ...]:
    return ONCE if payload.network_map and payload.network_map.state != "completed" else ()


LOCAL_NETWORK_RULES: Final[tuple[Rule[NetworkPayload], ...]] = (
    ProblemRule(
        "no-network",
        "networkMap.interfaces[].addresses",
        "no interface has an address that is valid beyond its own link",
        "The machine is not connected to a network.",
        "check the cable, or connect to the Wi-Fi",
        _disconnected,
        explained_by=("no-dhcp-answer",),
    ),
    ProblemRule(
        "no-dhcp-answer",
        "networkMap.interfaces[].addresses",
        "a Wi-Fi, or the interface of a machine without another connection, has only an address of"
        " 169.254.0.0/16",
        "The interface {interface} got no address by DHCP and uses {address} instead.",
        "check the cable, the Wi-Fi's password and the router's DHCP server",
        _without_dhcp,
    ),
    ProblemRule(
        "gateway-silent",
        "networkMap.hosts[] that are gateways",
        "no answer and no MAC address, though another host of its link has a MAC address",
        "The gateway {gateway} does not answer: no other network can be reached.",
        "check that the router is on and that this machine is configured for its network",
        _gateway_unanswered,
    ),
    ProblemRule(
        "address-conflict",
        "networkMap.interfaces[].addresses, MAC addresses of hosts and endpoints",
        "an address that two interfaces of this machine or two MAC addresses have",
        "The address {address} is used twice: by {by}.",
        "give one of them another address, or use DHCP for both",
        _same_address,
    ),
    WarningRule(
        "no-gateway",
        "networkMap.interfaces[].gateways",
        "none, on a machine with a network",
        "No gateway is configured: no other network can be reached.",
        "use DHCP, or configure the router's address as gateway",
        _without_gateway,
    ),
    WarningRule(
        "gateway-slow",
        "networkMap.hosts[].latencyMs of gateways",
        f"at least {format_milliseconds(GATEWAY_SLOW_MS)}",
        "The gateway {gateway} answers slowly: after {time}.",
        "check whether the Wi-Fi is weak or the network is overloaded",
        _gateway_slow,
    ),
    WarningRule(
        "source-failed",
        "networkMap.sources",
        "failed",
        "{step} failed: {why}.",
        "run `venue-agent doctor` for the reason",
        _failed_sources,
    ),
    WarningRule(
        "report-unfinished",
        "networkMap.state",
        "not completed",
        "The collection ended early: the report may be incomplete.",
        "request another report; on a large network, raise `network.max_duration_seconds`",
        _unfinished,
    ),
    NoteRule(
        "nothing-but-gateway",
        "networkMap.hosts[]",
        "the scan succeeded and found only this machine and its gateway",
        "No {host} answers on this network.",
        "do nothing if no other device is there; otherwise check whether this is a guest network,"
        " or one that isolates its devices (client isolation, VLAN)",
        _alone,
    ),
    NoteRule(
        "proxy-arp",
        "limitations[]",
        "a limitation states that one MAC address answers ARP for many addresses (proxy ARP)",
        "The device {mac} answers for {count} addresses.",
        "check whether it is an access point that isolates its clients: they are then not visible",
        _arp_proxies,
    ),
    NoteRule(
        "report-cut",
        "networkMap.truncated",
        "true",
        "The network has more hosts or services than the report can contain.",
        "raise `network.max_hosts` or `network.max_services`, whichever the limitations name",
        _cut,
        explained_by=("report-unfinished",),
    ),
    NoteRule(
        "own-address-only",
        "networkMap.interfaces[].addresses",
        "an interface that is not Wi-Fi has only an address of 169.254.0.0/16, on a machine with"
        " another connection",
        "The interface {interface} has only a self-assigned address: {address}.",
        OWN_ADDRESS_FIX,
        _direct_cable,
    ),
)
