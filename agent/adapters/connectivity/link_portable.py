"""Reads interfaces, addresses and default gateways with psutil and netifaces (macOS, Windows).

These libraries need half a megabyte of memory, so they are imported only when they are used.
"""

import contextlib
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.adapters.connectivity.link import LinkReading, Tables, summarize
from collectors.shared.host.gateways import SystemGateway, parse_prefix_length, read_gateways
from collectors.shared.linux.rtnetlink import DefaultRoute, Link, LinkAddress

_VIRTUAL = {
    "darwin": ("anpi", "ap", "awdl", "bridge", "gif", "llw", "stf", "utun", "vmenet", "vmnet"),
    "win32": ("Local Area Connection*", "Loopback", "VMware", "VirtualBox", "vEthernet"),
}
"""The beginnings of names of virtual interfaces. On Windows, they can have other names as well."""


def read_link(last_interface: str | None, *, needs_ipv4: bool) -> LinkReading:
    """Read the state of the link. Raises OSError if the system denies the list of interfaces.

    Args:
        last_interface: the interface of the last known default route.
        needs_ipv4: the service is reached by IPv4, so only IPv4 routes and addresses count.
    """
    reading = summarize(_read_tables(), last_interface, needs_ipv4=needs_ipv4)
    return replace(reading, index=system_index(reading.state.interface))


def system_index(name: str | None) -> int:
    """Return the system's number of an interface, or 0 if the system does not know its name.

    The socket address of an IPv6 gateway contains this number. On Windows, the system does not know
    the names of interfaces that psutil reports.
    """
    try:
        return socket.if_nametoindex(name) if name else 0
    except OSError:
        return 0


def _read_tables() -> Tables:
    import psutil

    from collectors.shared.host.link_stats import read_link_stats

    gateways: tuple[SystemGateway, ...] = ()
    with contextlib.suppress(OSError, ValueError, ImportError):
        gateways = read_gateways()
    try:
        addresses, stats = psutil.net_if_addrs(), read_link_stats()
        counters = psutil.net_io_counters(pernic=True)
    except psutil.Error as error:
        raise OSError(str(error)) from error
    return assemble(addresses, stats, counters, gateways, sys.platform)


def assemble(
    addresses: Mapping[str, Sequence[Any]],
    stats: Mapping[str, Any],
    counters: Mapping[str, Any],
    gateways: Sequence[SystemGateway],
    platform: str,
) -> Tables:
    """Join the readings of psutil and netifaces.

    An interface is numbered by its position in ``addresses``. The position of a gateway in
    ``gateways`` is used as the metric of its route.
    """
    links, own_addresses, routes = [], [], []
    for index, (name, entries) in enumerate(addresses.items(), start=1):
        link_addresses = list(_addresses(index, entries))
        texts = {each.address for each in link_addresses}
        own_addresses += link_addresses
        links.append(_link(index, name, stats.get(name), counters.get(name), platform))
        routes += [
            DefaultRoute(index, gateway.gateway, metric, ":" in gateway.gateway)
            for metric, gateway in enumerate(gateways)
            if gateway.reached_from & texts
        ]
    return Tables(links, own_addresses, routes)


def _link(index: int, name: str, stats: Any, counters: Any, platform: str) -> Link:
    flags = stats.flags.split(",") if stats else []
    return Link(
        index,
        name,
        has_carrier=stats is not None and stats.isup,
        is_loopback="loopback" in flags or name.startswith(("lo0", "Loopback")),
        is_point_to_point="pointopoint" in flags or "pointtopoint" in flags,
        kind="virtual" if name.startswith(_VIRTUAL.get(platform, ())) else "",
        errors=counters.errin + counters.errout if counters else None,
    )


def _addresses(index: int, entries: Sequence[Any]) -> Iterator[LinkAddress]:
    for entry in entries:
        address = entry.address.split("%")[0]
        if entry.family not in (socket.AF_INET, socket.AF_INET6):
            continue
        prefix_length = parse_prefix_length(address, entry.netmask)
        if prefix_length is not None:
            yield LinkAddress(index, address, prefix_length)
