"""The rules on the network of a network report: whether there is one, and who answers there."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from agent.presentation.findings.connectivity import is_routable, is_self_assigned
from agent.presentation.findings.rule import HERE, Rule, Sighting
from agent.presentation.humanize import milliseconds_in_words
from agent.wire.payloads.network import (
    MapHost,
    MapInterface,
    NetworkMap,
    NetworkPayload,
    SourceFailed,
)

GATEWAY_SLOW_MS: Final = 100

_NO_ROUTE: Final = "this machine has no default route"
"""What the collector says where there is no gateway, and not why it could not be read."""
_PROXY_ARP: Final = re.compile(r"(\S+) answers ARP for (\d+) addresses \(proxy ARP\)")


def _read(payload: NetworkPayload) -> NetworkMap | None:
    """Return the map of a machine whose interfaces were read."""
    found = payload.network_map
    return found if found is not None and found.sources.interfaces.state == "succeeded" else None


def _scanned(payload: NetworkPayload) -> NetworkMap | None:
    """Return the map of a network that was scanned to the end."""
    found = _read(payload)
    if found is None or payload.scope != "local-network":
        return None
    return found if found.sources.scan.state == "succeeded" else None


def _in_use(found: NetworkMap) -> tuple[MapInterface, ...]:
    """Return the interfaces with an address that reaches beyond their link."""
    return tuple(i for i in found.interfaces if any(is_routable(a.address) for a in i.addresses))


def _disconnected(payload: NetworkPayload) -> tuple[Sighting, ...]:
    found = _read(payload)
    return HERE if found is not None and not _in_use(found) else ()


def _without_dhcp(payload: NetworkPayload) -> Iterator[Sighting]:
    found = _read(payload)
    for link in found.interfaces if found is not None else ():
        addresses = [known.address for known in link.addresses]
        own = next(filter(is_self_assigned, addresses), None)
        if own is not None and not any(map(is_routable, addresses)):
            yield {"interface": link.name, "address": own}


def _without_gateway(payload: NetworkPayload) -> tuple[Sighting, ...]:
    found = _read(payload)
    is_read = payload.unavailable.gateway in {None, _NO_ROUTE}
    if found is None or not is_read or not _in_use(found):
        return ()
    return () if any(link.gateways for link in found.interfaces) else HERE


def _gateways(found: NetworkMap | None) -> tuple[MapHost, ...]:
    return () if found is None else tuple(h for h in found.hosts if "gateway" in h.sources)


def _gateway_silent(payload: NetworkPayload) -> Iterator[Sighting]:
    """Yield the gateways that are silent where others of their link are not.

    That others are seen tells that the link was looked at, and that MAC addresses can be read.
    """
    found = _scanned(payload)
    for gateway in _gateways(found):
        link = (
            (h for h in found.hosts if h.interface_name == gateway.interface_name) if found else ()
        )
        if not _was_seen(gateway) and any(_was_seen(h) and h.mac_address for h in link):
            yield {"gateway": gateway.address}


def _was_seen(host: MapHost) -> bool:
    return "local" not in host.sources and (
        host.reachability == "reachable" or host.mac_address is not None
    )


def _gateway_slow(payload: NetworkPayload) -> Iterator[Sighting]:
    for host in _gateways(payload.network_map):
        if host.latency_ms is not None and host.latency_ms >= GATEWAY_SLOW_MS:
            yield {"gateway": host.address, "time": milliseconds_in_words(host.latency_ms)}


def _alone(payload: NetworkPayload) -> Iterator[Sighting]:
    found = _scanned(payload)
    gateways = _gateways(found)
    if found is None or not gateways:
        return
    if all("local" in host.sources or host in gateways for host in found.hosts):
        yield {"but": "but the gateway" if any(map(_was_seen, gateways)) else "at all"}


def _same_address(payload: NetworkPayload) -> Iterator[Sighting]:
    """Yield each address that two interfaces of this machine have, or two MACs answer for."""
    found = payload.network_map
    if found is None:
        return
    own = Counter(
        address
        for link in found.interfaces
        for address in {known.address for known in link.addresses}
        if is_routable(address)
    )
    macs: dict[str, dict[str, None]] = {}
    seen = [(e.address, e.mac_address) for e in payload.endpoints]
    for address, mac in (*seen, *((h.address, h.mac_address) for h in found.hosts)):
        if mac is not None:
            macs.setdefault(address, {})[mac.lower()] = None
    for address, count in own.items():
        if count > 1:
            yield {"address": address, "whose": f"{count} interfaces of this machine"}
    for address, known in macs.items():
        if len(known) > 1 and is_routable(address):
            yield {"address": address, "whose": f"the MACs {' and '.join(known)}"}


def _failed_sources(payload: NetworkPayload) -> Iterator[Sighting]:
    found = payload.network_map
    if found is None:
        return
    for what, source in (
        ("Reading the interfaces", found.sources.interfaces),
        ("Scanning the network", found.sources.scan),
        ("Listening for announcements (mDNS)", found.sources.mdns),
    ):
        if isinstance(source, SourceFailed):
            yield {"what": what, "why": source.reason}


def _proxies(payload: NetworkPayload) -> Iterator[Sighting]:
    for line in payload.limitations:
        if match := _PROXY_ARP.match(line):
            yield {"mac": match[1], "count": match[2]}


def _cut(payload: NetworkPayload) -> tuple[Sighting, ...]:
    found = payload.network_map
    return HERE if found is not None and found.truncated else ()


def _unfinished(payload: NetworkPayload) -> tuple[Sighting, ...]:
    found = payload.network_map
    return HERE if found is not None and found.state != "completed" else ()


LOCAL_NETWORK_RULES: Final[tuple[Rule[NetworkPayload], ...]] = (
    Rule(
        "no-network",
        "problem",
        "networkMap.interfaces[].addresses",
        "no interface has an address that reaches beyond its own link",
        "The machine is on no network.",
        "check the cable or join the Wi-Fi",
        _disconnected,
        explained_by=("no-dhcp-answer",),
    ),
    Rule(
        "no-dhcp-answer",
        "problem",
        "networkMap.interfaces[].addresses",
        "an interface has nothing but an address of 169.254.0.0/16",
        "The interface {interface} was given no address and took {address} itself.",
        "check the cable, the Wi-Fi's password and that the router gives addresses (DHCP)",
        _without_dhcp,
    ),
    Rule(
        "gateway-silent",
        "problem",
        "networkMap.hosts[] that are gateways",
        "no answer and no MAC address, though others of its link have one",
        "The gateway {gateway} does not answer: there is no way out of this network.",
        "see that the router is on and that this machine is set up for its network",
        _gateway_silent,
    ),
    Rule(
        "address-conflict",
        "problem",
        "networkMap.interfaces[].addresses, MAC addresses of hosts and endpoints",
        "one address on two interfaces of this machine, or of two MAC addresses",
        "The address {address} is used twice: by {whose}.",
        "give one of them another address, or let the router give both (DHCP)",
        _same_address,
    ),
    Rule(
        "nothing-but-gateway",
        "warning",
        "networkMap.hosts[]",
        "the scan succeeded, and nothing was found but this machine and its gateway",
        "Nothing answers on this network {but}.",
        "see whether this is a guest network, or one that keeps its devices apart (client"
        " isolation, VLAN)",
        _alone,
    ),
    Rule(
        "no-gateway",
        "warning",
        "networkMap.interfaces[].gateways",
        "none, on a machine that has a network",
        "No gateway is set: there is no way out of this network.",
        "let the router give the address (DHCP), or set its address as gateway",
        _without_gateway,
    ),
    Rule(
        "gateway-slow",
        "warning",
        "networkMap.hosts[].latencyMs of gateways",
        f"at least {milliseconds_in_words(GATEWAY_SLOW_MS)}",
        "The gateway {gateway} answers slowly: after {time}.",
        "see whether the Wi-Fi is weak or the network overloaded",
        _gateway_slow,
    ),
    Rule(
        "source-failed",
        "warning",
        "networkMap.sources",
        "failed",
        "{what} failed: {why}.",
        "run `venue-agent doctor`: it says what stands in the way",
        _failed_sources,
    ),
    Rule(
        "report-unfinished",
        "warning",
        "networkMap.state",
        "not completed",
        "The report was cut short: there may be more than it shows.",
        "ask for another; on a large network raise `network.max_duration_seconds`",
        _unfinished,
    ),
    Rule(
        "proxy-arp",
        "note",
        "limitations[]",
        "say that one MAC address answers ARP for many (proxy ARP)",
        "The device {mac} answers for {count} addresses.",
        "see whether it is an access point that keeps its clients apart: they are not seen then",
        _proxies,
    ),
    Rule(
        "report-cut",
        "note",
        "networkMap.truncated",
        "true",
        "There is more on the network than the report holds.",
        "raise `network.max_hosts` or `network.max_services`; the limitations say which was met",
        _cut,
        explained_by=("report-unfinished",),
    ),
)
