"""Interfaces by psutil and gateways by netifaces (macOS, Windows).

netifaces names Windows interfaces by GUID and psutil by their friendly name, so a gateway finds
its interface by the addresses that both report.
"""

import ipaddress
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import psutil

from collectors.contract import Interface, InterfaceAddress, Unavailable
from collectors.network.host.local_network import LocalInterface, LocalNetwork, best_route_first
from collectors.network.matching.identity import normal_mac
from collectors.shared.addresses import is_loopback

_WIRELESS_NAMES = ("Wi-Fi", "WLAN", "Wireless")  # of Windows; macOS calls all of them en0, en1
_NO_MAC = "00:00:00:00:00:00"  # what loopback has
_IPV6_LINK_PREFIX = 64  # what psutil cannot tell on Windows; RFC 4291 section 2.5.4


@dataclass(frozen=True, slots=True)
class SystemAddress:
    """One address as psutil gives it; ``netmask`` is None where the system keeps it to itself."""

    kind: Literal["ipv4", "ipv6", "link"]
    address: str
    netmask: str | None = None


@dataclass(frozen=True, slots=True)
class SystemInterface:
    name: str
    addresses: tuple[SystemAddress, ...]
    is_up: bool = True
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SystemGateway:
    """A default gateway, the preferred first; ``reached_from`` are its interface's addresses."""

    gateway: str
    reached_from: frozenset[str]


def read_interfaces() -> LocalNetwork:
    """Ask psutil and netifaces. Raises OSError where the list of interfaces is denied."""
    interfaces = _read_system_interfaces()
    try:
        gateways = _read_gateways()
    except (OSError, ValueError) as error:
        unread = Unavailable(gateway=f"the routing table cannot be read: {error}")
        return LocalNetwork(assemble(interfaces, ()), unread)
    return LocalNetwork(assemble(interfaces, gateways))


def assemble(
    interfaces: Sequence[SystemInterface], gateways: Sequence[SystemGateway]
) -> tuple[LocalInterface, ...]:
    """Join both readings. The rank of a gateway in the list stands for its metric."""
    return best_route_first(
        [_join(index, interface, gateways) for index, interface in enumerate(interfaces, start=1)]
    )


def parse_prefix_length(address: str, netmask: str | None) -> int | None:
    """Return the bits of a netmask, or the usual ones where there is none. None: no address."""
    try:
        version = ipaddress.ip_address(address).version
        if netmask is None:
            return _IPV6_LINK_PREFIX if version == 6 else 32
        mask = int(ipaddress.ip_address(netmask.split("/")[0].split("%")[0]))
    except ValueError:
        return None
    return mask.bit_count()


def _join(
    index: int, interface: SystemInterface, gateways: Sequence[SystemGateway]
) -> LocalInterface:
    addresses = _interface_addresses(interface)
    own = {address.address for address in addresses}
    ranks = [rank for rank, gateway in enumerate(gateways) if gateway.reached_from & own]
    macs = (normal_mac(a.address) for a in interface.addresses if a.kind == "link")
    macs = (mac for mac in macs if mac != _NO_MAC)
    return LocalInterface(
        interface=Interface(
            name=interface.name,
            addresses=addresses,
            gateways=tuple(dict.fromkeys(gateways[rank].gateway for rank in ranks)),
            mac_address=next((mac for mac in macs if mac), None),
        ),
        index=index,
        is_up=interface.is_up,
        is_loopback=_is_loopback(interface, addresses),
        is_point_to_point="pointopoint" in interface.flags or "pointtopoint" in interface.flags,
        has_arp=False,  # no neighbour events here: the scan connects and reads the table after
        metric=ranks[0] if ranks else None,
        is_wireless=interface.name.startswith(_WIRELESS_NAMES),
    )


def _interface_addresses(interface: SystemInterface) -> tuple[InterfaceAddress, ...]:
    found: list[InterfaceAddress] = []
    for entry in interface.addresses:
        if entry.kind == "link":
            continue
        address = entry.address.split("%")[0]
        prefix_length = parse_prefix_length(address, entry.netmask)
        if prefix_length is not None:
            found.append(InterfaceAddress(address, entry.kind, prefix_length))
    return tuple(sorted(found, key=lambda address: address.family))


def _is_loopback(interface: SystemInterface, addresses: Sequence[InterfaceAddress]) -> bool:
    return "loopback" in interface.flags or any(
        is_loopback(address.address) for address in addresses
    )


_KINDS: Mapping[int, Literal["ipv4", "ipv6", "link"]] = {
    socket.AF_INET: "ipv4",
    socket.AF_INET6: "ipv6",
    psutil.AF_LINK: "link",
}


def _read_system_interfaces() -> tuple[SystemInterface, ...]:
    stats = psutil.net_if_stats()
    return tuple(
        SystemInterface(
            name=name,
            addresses=tuple(
                SystemAddress(_KINDS[a.family], a.address, a.netmask)
                for a in addresses
                if a.family in _KINDS
            ),
            is_up=name in stats and stats[name].isup,
            flags=frozenset(stats[name].flags.split(",")) if name in stats else frozenset(),
        )
        for name, addresses in psutil.net_if_addrs().items()
    )


def _read_gateways() -> tuple[SystemGateway, ...]:
    import netifaces  # not installed on Linux, where rtnetlink tells

    table = netifaces.gateways()
    families = (netifaces.AF_INET, netifaces.AF_INET6)
    found: list[SystemGateway] = []
    for family in families:
        # Each entry is (gateway, interface, is default); the default comes first.
        entries = [tuple(entry) for entry in _listed(table.get(family))]
        for gateway, interface, *_ in sorted(entries, key=lambda entry: not entry[-1]):
            own = netifaces.ifaddresses(str(interface))
            listed = (entry for each in families for entry in own.get(each, ()))
            addresses = frozenset(str(e["addr"]).split("%")[0] for e in listed if "addr" in e)
            found.append(SystemGateway(str(gateway).split("%")[0], addresses))
    return tuple(found)


def _listed(value: object) -> Sequence[Sequence[object]]:
    return value if isinstance(value, list) else ()
