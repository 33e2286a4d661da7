"""Interfaces, addresses and default routes by rtnetlink dumps (Linux)."""

from collections.abc import Sequence
from pathlib import Path

from collectors.contract import Interface, InterfaceAddress, Unavailable
from collectors.network.host import rtnetlink
from collectors.network.host.local_network import LocalInterface, LocalNetwork, best_route_first
from collectors.network.host.rtnetlink import DefaultRoute, Link, LinkAddress, Message
from collectors.network.host.rtnetlink_socket import read_dump


def read_interfaces() -> LocalNetwork:
    """Dump links, addresses and routes. Raises OSError where links or addresses are denied."""
    links = parse_links(read_dump(rtnetlink.RTM_GETLINK))
    addresses = parse_addresses(read_dump(rtnetlink.RTM_GETADDR))
    try:
        routes = parse_routes(read_dump(rtnetlink.RTM_GETROUTE))
    except OSError as error:
        unread = Unavailable(gateway=f"the routing table cannot be read: {error.strerror}")
        return LocalNetwork(assemble(links, addresses, ()), unread)
    return LocalNetwork(assemble(links, addresses, routes))


def parse_links(messages: Sequence[Message]) -> tuple[Link, ...]:
    bodies = (m.body for m in messages if m.type == rtnetlink.RTM_NEWLINK)
    return tuple(link for link in map(rtnetlink.parse_link, bodies) if link)


def parse_addresses(messages: Sequence[Message]) -> tuple[LinkAddress, ...]:
    bodies = (m.body for m in messages if m.type == rtnetlink.RTM_NEWADDR)
    return tuple(address for address in map(rtnetlink.parse_address, bodies) if address)


def parse_routes(messages: Sequence[Message]) -> tuple[DefaultRoute, ...]:
    bodies = (m.body for m in messages if m.type == rtnetlink.RTM_NEWROUTE)
    return tuple(route for body in bodies for route in rtnetlink.parse_default_routes(body))


def assemble(
    links: Sequence[Link], addresses: Sequence[LinkAddress], routes: Sequence[DefaultRoute]
) -> tuple[LocalInterface, ...]:
    """Join the three dumps by interface index; IPv4 comes before IPv6."""
    by_metric = sorted(routes, key=lambda route: route.metric)
    return best_route_first([_join(link, addresses, by_metric) for link in links])


def is_wireless(name: str, sys_root: Path = Path("/sys")) -> bool:
    """Tell whether an interface is a Wi-Fi, by sysfs or by the name that systemd and the kernel
    give to one."""
    return name.startswith("wl") or (sys_root / "class/net" / name / "phy80211").exists()


def _join(
    link: Link, addresses: Sequence[LinkAddress], by_metric: Sequence[DefaultRoute]
) -> LocalInterface:
    own = [entry.address for entry in addresses if entry.index == link.index]
    routes = [route for route in by_metric if route.index == link.index]
    return LocalInterface(
        interface=Interface(
            name=link.name,
            addresses=_ipv4_first(own),
            gateways=tuple(dict.fromkeys(route.gateway for route in routes)),
            mac_address=link.mac_address,
        ),
        index=link.index,
        is_up=link.is_up,
        is_loopback=link.is_loopback,
        is_point_to_point=link.is_point_to_point,
        has_arp=link.has_arp,
        metric=routes[0].metric if routes else None,
        is_wireless=not link.is_loopback and is_wireless(link.name),
    )


def _ipv4_first(addresses: Sequence[InterfaceAddress]) -> tuple[InterfaceAddress, ...]:
    return tuple(sorted(addresses, key=lambda address: address.family))
