"""Reads interfaces, addresses and default routes with rtnetlink dumps (Linux)."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from collectors.contract import Interface, InterfaceAddress, Unavailable
from collectors.shared.host.local_network import LocalInterface, LocalNetwork, best_route_first
from collectors.shared.linux import rtnetlink
from collectors.shared.linux.rtnetlink import DefaultRoute, Link, LinkAddress
from collectors.shared.linux.rtnetlink_socket import read_dump


def read_interfaces() -> LocalNetwork:
    """Dump links, addresses and routes. Raises OSError if the system denies links or addresses."""
    links = read_dump(rtnetlink.RTM_GETLINK, rtnetlink.parse_link)
    addresses = read_dump(rtnetlink.RTM_GETADDR, rtnetlink.parse_address)
    try:
        routes = read_dump(rtnetlink.RTM_GETROUTE, rtnetlink.parse_default_routes)
    except OSError as error:
        unread = Unavailable(gateway=f"the routing table cannot be read: {error.strerror}")
        return LocalNetwork(assemble(links, addresses, ()), unread)
    return LocalNetwork(assemble(links, addresses, tuple(chain.from_iterable(routes))))


def assemble(
    links: Sequence[Link],
    addresses: Sequence[LinkAddress],
    routes: Sequence[DefaultRoute],
) -> tuple[LocalInterface, ...]:
    """Join the three dumps by interface index. IPv4 addresses come before IPv6 addresses."""
    by_metric = sorted(routes, key=lambda route: route.metric)
    return best_route_first([_join(link, addresses, by_metric) for link in links])


def is_wireless(name: str, sys_root: Path = Path("/sys")) -> bool:
    """Return whether an interface is wireless, by sysfs or by the name that systemd gives it."""
    return name.startswith("wl") or (sys_root / "class/net" / name / "phy80211").exists()


def _join(
    link: Link,
    addresses: Sequence[LinkAddress],
    by_metric: Sequence[DefaultRoute],
) -> LocalInterface:
    own_addresses = [
        InterfaceAddress(
            address.address, "ipv6" if ":" in address.address else "ipv4", address.prefix_length
        )
        for address in addresses
        if address.index == link.index
    ]
    routes = [route for route in by_metric if route.index == link.index]
    return LocalInterface(
        Interface(
            link.name,
            addresses=tuple(sorted(own_addresses, key=lambda address: address.family)),
            gateways=tuple(dict.fromkeys(route.gateway for route in routes if route.gateway)),
            mac_address=link.mac_address,
        ),
        index=link.index,
        is_up=link.has_carrier,
        is_loopback=link.is_loopback,
        is_point_to_point=link.is_point_to_point,
        has_arp=link.has_arp,
        metric=routes[0].metric if routes else None,
        is_wireless=not link.is_loopback and is_wireless(link.name),
    )
