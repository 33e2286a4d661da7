"""Selects the addresses that the scan tries, in order, and describes which ones it leaves out.

By default, only private ranges are scanned: RFC 1918 and the link-local range of RFC 3927. The
shared space of RFC 6598 and loopback addresses are scanned if the configuration names them. The
addresses nearest to this machine's own come first, because they are the most useful ones if
``max_hosts`` cuts the list.
"""

import heapq
import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from itertools import chain, islice
from typing import Literal

from collectors.shared.addresses import OWN_RANGES, SCANNABLE_RANGES, network_of
from collectors.shared.host.local_network import LocalInterface

_BLOCK_PREFIX, _BLOCK_ADDRESSES = 24, 256
_POINT_TO_POINT_PREFIX = 31  # RFC 3021: both addresses are hosts
_VIRTUAL_NAMES = ("docker", "br-", "veth", "virbr", "vmnet", "vboxnet", "lxc", "cni", "podman")

Way = Literal["local", "arp", "routed"]


@dataclass(frozen=True, slots=True)
class Target:
    """One address to try. If ``ports`` is None, the ports of the job are tried.

    The ``way`` "local" is this machine, or a known printer that is contacted after the scan. "arp"
    is an address that the kernel resolves to a MAC on ``interface_name``. "routed" is every other
    address.
    """

    address: str
    way: Way
    interface_name: str | None = None
    ports: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class TargetSelection:
    """The addresses to try. ``networks`` are the ranges that ``targets`` cover completely.

    ``limitations`` state what is left out. ``truncated``: ``max_hosts`` has cut the list.
    """

    targets: tuple[Target, ...] = ()
    networks: tuple[str, ...] = ()
    limitations: tuple[str, ...] = ()
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class _Range:
    """A subnet to scan. The distance of its addresses is measured from ``near``."""

    network: IPv4Network
    near: IPv4Address
    way: Way
    interface_name: str | None


def select_own_addresses(interfaces: Sequence[LocalInterface]) -> TargetSelection:
    """Select this machine itself and nothing else."""
    targets = [
        Target(address.address, "local", local.interface.name)
        for local in interfaces
        if local.is_up
        for address in local.interface.addresses
        if address.family == "ipv4"
    ]
    return TargetSelection(tuple(targets))


def select_targets(
    interfaces: Sequence[LocalInterface],
    *,
    subnets: Sequence[str],
    exclude: Sequence[str],
    max_hosts: int,
    first: Iterable[str] = (),
) -> TargetSelection:
    """Select at most ``max_hosts`` addresses: this machine's own, ``first``, then the nearest.

    ``interfaces`` are the interfaces in use. If ``subnets`` is empty, their private networks are
    scanned. ``first`` are preferred addresses. Those outside of the scanned networks are ignored.
    """
    limitations: list[str] = []
    excluded = list(_parse_networks(exclude, limitations))
    if subnets:
        ranges = _configured_ranges(interfaces, subnets, limitations)
    else:
        ranges = _own_ranges(interfaces, limitations)
    ranges = _distinct(ranges)
    candidates = list(islice(_ordered(interfaces, ranges, first, excluded), max_hosts + 1))
    targets = tuple(candidates[:max_hosts])
    total = _count(ranges)
    if len(candidates) <= max_hosts:
        return TargetSelection(targets, _without_excluded(ranges, excluded), tuple(limitations))
    limitations.append(
        f"{len(targets)} of about {total} addresses were tried: max_hosts is {max_hosts}"
    )
    return TargetSelection(targets, (), tuple(limitations), truncated=True)


def _ordered(
    interfaces: Sequence[LocalInterface],
    ranges: Sequence[_Range],
    first: Iterable[str],
    excluded: Sequence[IPv4Network],
) -> Iterator[Target]:
    """Yield the targets in the order of `select_targets`, each once."""
    own_targets = {t.address: t for t in select_own_addresses(interfaces).targets}
    preferred = (_target(address, ranges) for address in first)
    seen: set[str] = set()
    for target in chain(
        own_targets.values(), filter(None, preferred), _nearest_first(ranges, excluded)
    ):
        if target.address in seen:
            continue
        seen.add(target.address)
        address = IPv4Address(target.address)
        if target.way == "local" or not any(address in network for network in excluded):
            yield target


def _nearest_first(ranges: Sequence[_Range], excluded: Sequence[IPv4Network]) -> Iterator[Target]:
    """Yield all addresses in blocks of 256, the block nearest to this machine's address first."""
    streams = [_blocks(range_, rank) for rank, range_ in enumerate(ranges)]
    for _distance, rank, start in heapq.merge(*streams):
        block = IPv4Network((start, _BLOCK_PREFIX))
        # A whole block is skipped at once, because an excluded network may have millions of
        # addresses.
        if any(block.subnet_of(network) for network in excluded):
            continue
        range_ = ranges[rank]
        for address in _block_addresses(range_.network, start):
            yield Target(str(address), range_.way, range_.interface_name)


def _distinct(ranges: Sequence[_Range]) -> list[_Range]:
    """Leave out each range that is part of an earlier one.

    For example, an interface may have two addresses in one network.
    """
    kept: list[_Range] = []
    for range_ in ranges:
        if not any(range_.network.subnet_of(other.network) for other in kept):
            kept.append(range_)
    return kept


def _blocks(range_: _Range, rank: int) -> Iterator[tuple[int, int, int]]:
    """Yield (distance, rank, start) of each block of a range, nearest first.

    ``distance`` is in blocks. ``rank`` is the position of the range in the list of ranges.
    ``start`` is the first address of the block, as a number.
    """
    first = int(range_.network.network_address)
    last = int(range_.network.broadcast_address)
    near_start = int(range_.near) // _BLOCK_ADDRESSES * _BLOCK_ADDRESSES
    block_count = (last - first) // _BLOCK_ADDRESSES + 1
    for distance in range(block_count):
        offset = distance * _BLOCK_ADDRESSES
        for start in sorted({near_start - offset, near_start + offset}):
            if start <= last and start + _BLOCK_ADDRESSES > first:
                yield distance, rank, start


def _block_addresses(network: IPv4Network, start: int) -> Iterator[IPv4Address]:
    first, last = int(network.network_address), int(network.broadcast_address)
    if network.prefixlen < _POINT_TO_POINT_PREFIX:
        first, last = first + 1, last - 1
    for number in range(max(first, start), min(last + 1, start + _BLOCK_ADDRESSES)):
        yield IPv4Address(number)


def _own_ranges(interfaces: Sequence[LocalInterface], limitations: list[str]) -> list[_Range]:
    has_default_route = any(local.metric is not None for local in interfaces)
    ranges: list[_Range] = []
    for local in interfaces:
        name = local.interface.name
        if local.is_point_to_point:
            limitations.append(f"{name} is a point-to-point link and was not scanned")
        elif has_default_route and local.metric is None and name.startswith(_VIRTUAL_NAMES):
            limitations.append(f"{name} is a network of containers or VMs and was not scanned")
        else:
            ranges += _ranges_of(local, limitations)
    return ranges


def _ranges_of(local: LocalInterface, limitations: list[str]) -> Iterator[_Range]:
    name = local.interface.name
    for address in local.interface.addresses:
        network = network_of(address)
        if not isinstance(network, IPv4Network):
            continue
        if any(network.subnet_of(known) for known in OWN_RANGES):
            way: Way = "arp" if local.has_arp else "routed"
            yield _Range(network, IPv4Address(address.address), way, name)
        else:
            limitations.append(f"{network} on {name} is no private network and was not scanned")


def _configured_ranges(
    interfaces: Sequence[LocalInterface], subnets: Sequence[str], limitations: list[str]
) -> list[_Range]:
    ranges: list[_Range] = []
    for network in _parse_networks(subnets, limitations):
        if any(network.subnet_of(known) for known in SCANNABLE_RANGES):
            ranges += _split_by_link(network, interfaces)
        else:
            limitations.append(f"{network} is no private range and was not scanned")
    return ranges


def _split_by_link(network: IPv4Network, interfaces: Sequence[LocalInterface]) -> Iterator[_Range]:
    """Yield a configured subnet as ranges with the ways to reach its addresses.

    If one link of this machine contains the whole subnet, yield one range on this link. Otherwise
    yield the parts that are on links, then the whole subnet as routed. An address in two of these
    ranges becomes a target of the first one only.
    """
    if network.is_loopback:
        yield _Range(network, network.network_address, "local", None)
        return
    for range_ in _own_ranges(interfaces, []):
        if network.subnet_of(range_.network):
            near = range_.near if range_.near in network else network.network_address
            yield _Range(network, near, range_.way, range_.interface_name)
            return
    for range_ in _own_ranges(interfaces, []):
        if range_.network.subnet_of(network):
            yield range_
    yield _Range(network, network.network_address, "routed", None)


def _target(address: str, ranges: Sequence[_Range]) -> Target | None:
    try:
        parsed = IPv4Address(address)
    except ValueError:
        return None
    for range_ in ranges:
        network = range_.network
        edges = {network.network_address, network.broadcast_address}
        is_edge = network.prefixlen < _POINT_TO_POINT_PREFIX and parsed in edges
        if parsed in network and not is_edge:
            return Target(address, range_.way, range_.interface_name)
    return None


def _without_excluded(ranges: Sequence[_Range], excluded: Sequence[IPv4Network]) -> tuple[str, ...]:
    """Return the ranges without the excluded networks."""
    kept = [range_.network for range_ in ranges]
    for other in excluded:
        kept = [part for network in kept for part in _without(network, other)]
    return tuple(map(str, ipaddress.collapse_addresses(kept)))


def _without(network: IPv4Network, excluded: IPv4Network) -> Iterable[IPv4Network]:
    if network.subnet_of(excluded):
        return ()
    return network.address_exclude(excluded) if excluded.subnet_of(network) else (network,)


def _count(ranges: Sequence[_Range]) -> int:
    networks = ipaddress.collapse_addresses(range_.network for range_ in ranges)
    # The first and the last address of a network are no hosts.
    return sum(max(network.num_addresses - 2, 1) for network in networks)


def _parse_networks(texts: Sequence[str], limitations: list[str]) -> Iterator[IPv4Network]:
    for text in texts:
        try:
            network = ipaddress.ip_network(text, strict=False)
        except ValueError:
            limitations.append(f"{text[:64]!r} is no network and was left out")
            continue
        if isinstance(network, IPv4Network):
            yield network
        else:
            limitations.append(f"{network} is IPv6 and was not scanned: mDNS discovers its hosts")
