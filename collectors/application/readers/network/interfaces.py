"""Reads the network interfaces: whether they are up, their speed, addresses and counters."""

import ipaddress
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import psutil

from collectors.application.deadline import Deadline
from collectors.application.readers.network.dhcp import Dhcp, dhcp_fields
from collectors.application.readers.network.wireless import Wireless, wireless_fields
from collectors.application.readers.resources import PSUTIL
from collectors.application.source import SYSTEM, Fields, Reading, left_out, source
from collectors.contract import InterfaceFields
from collectors.shared.host.link_stats import read_link_stats
from collectors.shared.text import clean_text

INTERFACES_MAX: Final = 64
ADDRESSES_MAX: Final = 32

_DUPLEX: Final[Mapping[int, str]] = {psutil.NIC_DUPLEX_FULL: "full", psutil.NIC_DUPLEX_HALF: "half"}
COUNTERS: Final = (
    ("interface.receivedBytes", "bytes_recv"),
    ("interface.sentBytes", "bytes_sent"),
    ("interface.receivedPackets", "packets_recv"),
    ("interface.sentPackets", "packets_sent"),
    ("interface.receiveErrors", "errin"),
    ("interface.sendErrors", "errout"),
    ("interface.receiveDrops", "dropin"),
    ("interface.sendDrops", "dropout"),
)


@dataclass(frozen=True, slots=True)
class Links:
    """The facts that each platform reads differently, by interface name.

    ``default_routes`` are the interfaces with a default route; None if this is unknown.
    """

    types: Mapping[str, str]
    wireless: Mapping[str, Wireless]
    default_routes: frozenset[str] | None = None
    dhcp: Mapping[str, Dhcp] = field(default_factory=dict)


ReadLinks = Callable[[tuple[str, ...], Deadline], Links]


@source("interfaces", PSUTIL, "network.interfaceCount")
def read_interfaces(deadline: Deadline, read_links: ReadLinks) -> Reading:
    stats = read_link_stats()
    addresses = psutil.net_if_addrs()
    counters = psutil.net_io_counters(pernic=True)
    names = tuple(sorted(stats))[:INTERFACES_MAX]
    # One entry of each interface is its MAC. The others are IP addresses.
    cut_count = sum(
        max(0, len(address_list) - ADDRESSES_MAX - 1) for address_list in addresses.values()
    )
    links = read_links(names, deadline)
    entries = tuple(
        InterfaceFields(
            clean_text(name, 64),
            (
                *_state(name, stats[name], links),
                *address_fields(addresses.get(name, [])),
                *dhcp_fields(links.dhcp.get(name, Dhcp()), address_texts(addresses.get(name, []))),
                *_counters(counters.get(name)),
                *wireless_fields(links.wireless.get(name)),
            ),
        )
        for name in names
    )
    return Reading(
        fields=(PSUTIL.available("network.interfaceCount", len(stats)),),
        interfaces=entries,
        limitations=(
            *left_out(len(stats), INTERFACES_MAX, "interfaces"),
            *left_out(ADDRESSES_MAX + cut_count, ADDRESSES_MAX, "addresses of interfaces"),
        ),
    )


def _state(name: str, stats: "psutil._ntp.snicstats", links: Links) -> Fields:
    not_reported = "the driver does not report it"
    # Drivers report 0 and 65535 for an unknown speed.
    speed = stats.speed if 0 < stats.speed < 2**31 and stats.speed != 65535 else None
    routes = links.default_routes
    has_route = None if routes is None else name in routes
    return (
        SYSTEM.fact("interface.type", links.types.get(name), "the system does not report it"),
        PSUTIL.available("interface.up", stats.isup),
        PSUTIL.fact("interface.speedMegabitsPerSecond", speed, not_reported),
        PSUTIL.fact("interface.duplex", _DUPLEX.get(stats.duplex), not_reported),
        PSUTIL.fact("interface.mtu", stats.mtu or None, not_reported),
        SYSTEM.fact("interface.defaultRoute", has_route, "the system does not report it"),
    )


def address_fields(addresses: "list[psutil._ntp.snicaddr]") -> Fields:
    """Return the MAC address, and the IP addresses with their prefix lengths."""
    macs = [entry.address for entry in addresses if entry.family == psutil.AF_LINK]
    mac = macs[0].lower().replace("-", ":") if macs else None
    known_mac = None if mac == "00:00:00:00:00:00" else mac
    return (
        PSUTIL.fact("interface.macAddress", known_mac, "it has no MAC", "not-applicable"),
        PSUTIL.available("interface.addresses", address_texts(addresses)),
    )


def address_texts(addresses: "list[psutil._ntp.snicaddr]") -> tuple[str, ...]:
    """Return the IP addresses with their prefix lengths, at most `ADDRESSES_MAX`."""
    texts = (
        with_prefix(entry.address, entry.netmask)
        for entry in addresses
        if entry.family in {socket.AF_INET, socket.AF_INET6}
    )
    return tuple(text for text in texts if text is not None)[:ADDRESSES_MAX]


def with_prefix(address: str, netmask: str | None) -> str | None:
    """Return ``192.0.2.1/24`` for ``192.0.2.1`` and ``255.255.255.0``."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
        if netmask is None:
            return str(ip)
        prefix = int(ipaddress.ip_address(netmask)).bit_count()
    except ValueError:
        return None
    return f"{ip}/{prefix}"


def _counters(counters: "psutil._ntp.snetio | None") -> Fields:
    return tuple(
        PSUTIL.fact(key, getattr(counters, name, None), "the system does not count it")
        for key, name in COUNTERS
    )
