"""Reads interfaces with psutil and gateways with netifaces (macOS, Windows).

On Windows, netifaces names an interface by its GUID and psutil by its friendly name. The interface
of a gateway is therefore identified by the addresses that both libraries report.
"""

import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import psutil

from collectors.contract import Interface, InterfaceAddress, Unavailable
from collectors.shared.addresses import is_loopback, normal_mac
from collectors.shared.host.gateways import SystemGateway, parse_prefix_length, read_gateways
from collectors.shared.host.link_stats import read_link_stats
from collectors.shared.host.local_network import LocalInterface, LocalNetwork, best_route_first

_WIRELESS_NAMES = ("Wi-Fi", "WLAN", "Wireless")  # on Windows; macOS names all interfaces en0, en1
_FAMILIES: Mapping[int, Literal["ipv4", "ipv6"]] = {socket.AF_INET: "ipv4", socket.AF_INET6: "ipv6"}


def read_interfaces() -> LocalNetwork:
    """Read psutil and netifaces. Raises OSError if the system denies the list of interfaces."""
    addresses, stats = psutil.net_if_addrs(), read_link_stats()
    try:
        gateways = read_gateways()
    except (OSError, ValueError) as error:
        unread = Unavailable(gateway=f"the routing table cannot be read: {error}")
        return LocalNetwork(assemble(addresses, stats, ()), unread)
    return LocalNetwork(assemble(addresses, stats, gateways))


def assemble(
    addresses: "Mapping[str, Sequence[psutil._ntp.snicaddr]]",
    stats: "Mapping[str, psutil._ntp.snicstats]",
    gateways: Sequence[SystemGateway],
) -> tuple[LocalInterface, ...]:
    """Return each interface with its addresses, statistics and gateways.

    ``gateways`` are in order of preference. The position of a gateway in ``gateways`` is used as
    the metric of its route.
    """
    joined = [
        _join(index, name, addresses[name], stats.get(name), gateways)
        for index, name in enumerate(addresses, start=1)
    ]
    return best_route_first(joined)


def _join(
    index: int,
    name: str,
    entries: "Sequence[psutil._ntp.snicaddr]",
    stats: "psutil._ntp.snicstats | None",
    gateways: Sequence[SystemGateway],
) -> LocalInterface:
    addresses = tuple(sorted(_addresses(entries), key=lambda address: address.family))
    texts = {address.address for address in addresses}
    ranks = [rank for rank, gateway in enumerate(gateways) if gateway.reached_from & texts]
    macs = (normal_mac(entry.address) for entry in entries if entry.family == psutil.AF_LINK)
    flags = stats.flags.split(",") if stats else []
    return LocalInterface(
        interface=Interface(
            name=name,
            addresses=addresses,
            gateways=tuple(dict.fromkeys(gateways[rank].gateway for rank in ranks)),
            mac_address=next(filter(None, macs), None),
        ),
        index=index,
        is_up=stats is not None and stats.isup,
        is_loopback="loopback" in flags or any(map(is_loopback, texts)),
        is_point_to_point="pointopoint" in flags or "pointtopoint" in flags,
        # These systems report no neighbour events. So the scan first connects to the addresses, and
        # then reads their MACs from the neighbour table.
        has_arp=False,
        metric=ranks[0] if ranks else None,
        is_wireless=name.startswith(_WIRELESS_NAMES),
    )


def _addresses(entries: "Sequence[psutil._ntp.snicaddr]") -> Iterator[InterfaceAddress]:
    for entry in entries:
        address, family = entry.address.split("%")[0], _FAMILIES.get(entry.family)
        prefix_length = parse_prefix_length(address, entry.netmask) if family else None
        if family and prefix_length is not None:
            yield InterfaceAddress(address, family, prefix_length)
