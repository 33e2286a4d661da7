"""Summarizes the links, addresses and routes that `link_linux` or `link_portable` has read."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from agent.rules.connectivity.cause import LinkState
from collectors.shared.addresses import Network, parse_networks
from collectors.shared.linux.rtnetlink import DefaultRoute, Link, LinkAddress

_HARDWARE: Final = frozenset({"", "wwan", "rmnet"})
"""The values of `Link.kind` for hardware: the kinds of modems, and "" for all other hardware."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The links, addresses and default routes of a machine."""

    links: Sequence[Link] = ()
    addresses: Sequence[LinkAddress] = ()
    routes: Sequence[DefaultRoute] = ()


@dataclass(frozen=True, slots=True)
class LinkReading:
    """The state of the link, and further properties that probes need.

    Args:
        index: the number of the interface.
        networks: the networks of this machine.
        conflict: an address of the interface that another machine uses as well. None if there is
            no such address, or if the interface also has a usable address that is neither
            link-local nor temporary. The kernel detects conflicts of IPv6 addresses. For IPv4,
            detection would need a raw socket (RFC 5227).
    """

    state: LinkState = field(default_factory=LinkState)
    index: int = 0
    networks: tuple[Network, ...] = ()
    conflict: str | None = None


def summarize(
    tables: Tables, last_interface: str | None, *, needs_ipv4: bool = False
) -> LinkReading:
    """Return the state of the interface that leads to the service.

    This is the interface of the default route. If there is no default route, it is the last known
    interface. If none is known, any hardware interface counts. Virtual interfaces, such as those of
    containers, count only if the default route leads through them.

    Args:
        last_interface: the name of the interface of the last known default route.
        needs_ipv4: the service is reached by IPv4, so only IPv4 routes and addresses count.
    """
    routes = [route for route in tables.routes if not (needs_ipv4 and route.is_ipv6)]
    route = min(routes, key=lambda each: (each.is_ipv6, each.metric), default=None)
    candidates = _candidates(tables.links, route, last_interface)
    indexes = {each.index for each in candidates}
    own_addresses = [
        each
        for each in tables.addresses
        if each.index in indexes and not (needs_ipv4 and ":" in each.address)
    ]
    lasting_addresses = tuple(each.address for each in own_addresses if _is_lasting(each))
    duplicate = next((each.address for each in own_addresses if each.is_duplicate), None)
    # A duplicate address does no harm if the interface also has a lasting address.
    conflict = None if lasting_addresses else duplicate
    addresses = (conflict,) if conflict else lasting_addresses
    main = candidates[0] if len(candidates) == 1 else None
    # If there are only virtual interfaces, one of them may lead to the service: nothing is known.
    is_known = bool(candidates or last_interface) or all(each.is_loopback for each in tables.links)
    return LinkReading(
        state=LinkState(
            interface=main.name if main else last_interface,
            has_link=any(each.has_carrier for each in candidates) if is_known else None,
            addresses=addresses if is_known else None,
            has_route=route is not None,
            gateway=route.gateway if route else None,
            link_errors=main.errors if main else None,
        ),
        index=main.index if main else 0,
        networks=_networks(tables),
        conflict=conflict,
    )


def _candidates(
    links: Sequence[Link], route: DefaultRoute | None, last_interface: str | None
) -> list[Link]:
    """Return the interface that leads to the service. If unknown, return all possible ones."""
    if route is not None:
        return [each for each in links if each.index == route.index]
    if last_interface is not None:
        return [each for each in links if each.name == last_interface]
    return [each for each in links if each.kind in _HARDWARE and not each.is_loopback]


def _networks(tables: Tables) -> tuple[Network, ...]:
    loopback = {each.index for each in tables.links if each.is_loopback}
    return parse_networks(
        f"{each.address}/{each.prefix_length}"
        for each in tables.addresses
        if each.is_usable and each.index not in loopback
    )


def _is_lasting(address: LinkAddress) -> bool:
    """Return whether an address is usable beyond its link, and is not replaced regularly."""
    is_link_local = ipaddress.ip_address(address.address).is_link_local
    return address.is_usable and not address.is_temporary and not is_link_local
