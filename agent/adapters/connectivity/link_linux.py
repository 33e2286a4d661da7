"""Reads links, addresses, default routes and neighbours by rtnetlink (Linux). Sends no packets."""

import contextlib
from dataclasses import replace
from itertools import chain
from pathlib import Path

from agent.adapters.connectivity.link import LinkReading, Tables, summarize
from collectors.shared.linux import rtnetlink
from collectors.shared.linux.rtnetlink_socket import read_dump, read_neighbours
from collectors.shared.linux.wireless import parse_signals, read_access_point


def read_link(last_interface: str | None, *, needs_ipv4: bool) -> LinkReading:
    """Read the state of the link. Raises OSError if a sandbox denies it.

    Args:
        last_interface: the interface of the last known default route.
        needs_ipv4: the service is reached by IPv4, so only IPv4 routes and addresses count.
    """
    reading = summarize(_read_tables(), last_interface, needs_ipv4=needs_ipv4)
    state, signals = reading.state, parse_signals(_read(Path("/proc/net/wireless")))
    gateway = find_neighbour(state.gateway, reading.index)
    wireless = state.interface if state.interface in signals else None
    measured = replace(
        state,
        gateway_mac=gateway.mac_address if gateway else None,
        access_point=read_access_point(wireless) if wireless else None,
        signal_dbm=signals[wireless] if wireless else None,
    )
    return replace(reading, state=measured)


def find_neighbour(address: str | None, index: int) -> rtnetlink.LinkNeighbour | None:
    """Return the entry for ``address`` in the neighbour table of the interface ``index``.

    Returns None if there is no such entry, or if the system denies access to the table.
    """
    if address is None:
        return None
    family = rtnetlink.AF_INET6 if ":" in address else rtnetlink.AF_INET
    with contextlib.suppress(OSError):
        for each in read_neighbours(family):
            if (each.index, each.address) == (index, address):
                return each
    return None


def _read_tables() -> Tables:
    """Dump the kernel's tables. Raises OSError if a sandbox denies them."""
    routes = read_dump(rtnetlink.RTM_GETROUTE, rtnetlink.parse_default_routes)
    return Tables(
        read_dump(rtnetlink.RTM_GETLINK, rtnetlink.parse_link),
        read_dump(rtnetlink.RTM_GETADDR, rtnetlink.parse_address),
        tuple(chain.from_iterable(routes)),
    )


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
