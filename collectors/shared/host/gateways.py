"""Reads the default gateways with netifaces (macOS, Windows), and parses psutil's netmasks."""

import ipaddress
from collections.abc import Sequence
from typing import NamedTuple

_IPV6_LINK_PREFIX = 64
"""The usual prefix length of an IPv6 link (RFC 4291, section 2.5.4). It is used on Windows, where
psutil reports no netmask for IPv6 addresses."""
_TUNNEL_GATEWAY = "fe80::"
"""The gateway of the default routes that macOS adds for its own tunnels (utun). It is not a host.
Every Mac has these routes, even without a network."""


class SystemGateway(NamedTuple):
    """A default gateway. ``reached_from`` are the addresses of the interface that leads to it."""

    gateway: str
    reached_from: frozenset[str]


def read_gateways() -> tuple[SystemGateway, ...]:
    """Return the default gateways, the preferred ones first. Raises OSError and ValueError."""
    import netifaces  # not installed on Linux, which has rtnetlink

    table = netifaces.gateways()
    families = (netifaces.AF_INET, netifaces.AF_INET6)
    gateways: list[SystemGateway] = []
    for family in families:
        # Each entry is (gateway, interface, is preferred). The preferred one is sorted first.
        entries = [tuple(entry) for entry in _list_or_empty(table.get(family))]
        for gateway, interface, *_ in sorted(entries, key=lambda entry: not entry[-1]):
            address = str(gateway).split("%")[0]
            if address == _TUNNEL_GATEWAY:
                continue
            addresses_by_family = netifaces.ifaddresses(str(interface))
            listed = (entry for number in families for entry in addresses_by_family.get(number, ()))
            addresses = frozenset(str(e["addr"]).split("%")[0] for e in listed if "addr" in e)
            gateways.append(SystemGateway(address, addresses))
    return tuple(gateways)


def parse_prefix_length(address: str, netmask: str | None) -> int | None:
    """Return the number of bits in a netmask; without a netmask, 64 for IPv6 and 32 for IPv4.

    Returns None if a text is not an address.
    """
    try:
        version = ipaddress.ip_address(address).version
        if netmask is None:
            return _IPV6_LINK_PREFIX if version == 6 else 32
        return int(ipaddress.ip_address(netmask.split("/")[0].split("%")[0])).bit_count()
    except ValueError:
        return None


def _list_or_empty(value: object) -> Sequence[Sequence[object]]:
    return value if isinstance(value, list) else ()
