"""The differences in hosts between two network reports.

A host can be new or gone, or have a new address or other open ports.
"""

import ipaddress
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from agent.presentation.changes.change import Change, change, covers
from agent.presentation.hosts.makers import RANDOM_ADDRESS
from agent.presentation.hosts.rows import HostRow, host_rows
from agent.presentation.humanize import counted
from agent.wire.addresses import parse_ip
from agent.wire.payloads.network import MapHost, NetworkMap, NetworkPayload

_PORTS_LISTED_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class _Host:
    """A host of the network map, and its row in the list of hosts."""

    host: MapHost
    row: HostRow

    @property
    def mac(self) -> str:
        return (self.host.mac_address or "").lower()

    @property
    def address(self) -> str:
        return self.host.address

    @property
    def identity(self) -> tuple[str, str]:
        return self.mac, self.address

    @property
    def is_this_machine(self) -> bool:
        return "local" in self.host.sources

    @property
    def is_transient(self) -> bool:
        """Return whether this is a phone, or an unrecognisable device without services or printers.

        A device with a randomised address counts as unrecognisable, even if it has a name. Phones
        and such devices join and leave the network all day.
        """
        if self.row.kind == "phone":
            return True
        has_name = self.row.is_recognisable and self.row.maker != RANDOM_ADDRESS
        return not (has_name or self.row.services or self.row.printers)

    @property
    def label(self) -> str:
        title = self.row.title
        return title if title == self.row.address else f"{title} ({self.row.address})"

    @property
    def subject(self) -> str:
        return f"{self.mac} {self.row.address}".strip()


_Pair = tuple[_Host, _Host]
"""A host of the earlier report, and the host of the later report that it is compared with."""


def host_changes(
    before: NetworkPayload, after: NetworkPayload
) -> tuple[list[Change], tuple[str, ...]]:
    """Return the changes, and sentences about hosts that one of the reports did not check."""
    pairs, removed_hosts, new_hosts = _pair_hosts(_hosts(before), _hosts(after))
    routers = _replaced_routers(removed_hosts, new_hosts)
    removed_checked, removed_unchecked = _split_by_coverage(
        _without(routers, removed_hosts, 0), _coverage(after, before)
    )
    new_checked, new_unchecked = _split_by_coverage(
        _without(routers, new_hosts, 1), _coverage(before, after)
    )
    changes = [_router_change(*router) for router in routers]
    changes += _added_and_removed(removed_checked, new_checked)
    changes += (c for pair in pairs if (c := _address_change(*pair)) is not None)
    changes += _port_changes(pairs, before, after)
    lines = (
        _not_checked(len(removed_unchecked), " of the earlier report", "this time"),
        _not_checked(len(new_unchecked), "", "in the earlier report"),
    )
    return changes, tuple(filter(None, lines))


def _hosts(payload: NetworkPayload) -> list[_Host]:
    hosts = payload.network_map.hosts if payload.network_map else ()
    # After the hosts of the map, host_rows() returns the hosts that only endpoints contain. map()
    # drops these.
    hosts_with_rows = map(_Host, hosts, host_rows(payload))
    # A host that is listed at two interfaces counts once.
    return list({host.identity: host for host in hosts_with_rows}.values())


def _split_by_coverage(
    hosts: list[_Host], is_covered: Callable[[MapHost], bool]
) -> tuple[list[_Host], ...]:
    """Return the covered hosts, and the hosts that are not covered.

    A host of one report is covered if the other report would have discovered it. This machine is
    left out of the covered hosts.
    """
    covered_hosts = [host for host in hosts if is_covered(host.host)]
    uncovered_hosts = [host for host in hosts if not is_covered(host.host)]
    return [host for host in covered_hosts if not host.is_this_machine], uncovered_hosts


# ---------------------------------------------------------------------------- pairs


def _pair_hosts(
    before: list[_Host], after: list[_Host]
) -> tuple[list[_Pair], list[_Host], list[_Host]]:
    """Return the hosts in both reports as pairs, and the hosts in one report only.

    The second result has the hosts that are only in ``before``, the third those only in ``after``.
    A device is identified by its MAC address, unless several hosts have this MAC address. If one of
    the reports has no MAC address of the device, it is identified by its IP address.
    """
    pairs: list[_Pair] = []
    for key in map(attrgetter, ("identity", "mac", "address")):
        earlier = _unique(_without(pairs, before, 0), key)
        later = _unique(_without(pairs, after, 1), key)
        pairs += [
            (one, later[value])
            for value, one in earlier.items()
            if value in later and not _have_different_macs(one, later[value])
        ]
    return pairs, _without(pairs, before, 0), _without(pairs, after, 1)


def _have_different_macs(one: _Host, other: _Host) -> bool:
    return bool(one.mac and other.mac and one.mac != other.mac)


def _unique(hosts: list[_Host], key: Callable[[_Host], Hashable]) -> dict[Hashable, _Host]:
    """Return the hosts whose key no other host has, by their key. Empty keys are left out."""
    counts = Counter(map(key, hosts))
    return {value: host for host in hosts if (value := key(host)) and counts[value] == 1}


def _without(pairs: list[_Pair], hosts: list[_Host], side: int) -> list[_Host]:
    """Return the hosts that are in no pair.

    ``side`` is the position of these hosts in a pair: 0 for ``before``, 1 for ``after``.
    """
    paired_ids = {id(pair[side]) for pair in pairs}
    return [host for host in hosts if id(host) not in paired_ids]


# ---------------------------------------------------------------------------- changes


def _replaced_routers(removed_hosts: list[_Host], new_hosts: list[_Host]) -> list[_Pair]:
    """Return the routers whose address now belongs to a different gateway, with this gateway.

    Of several devices with the address of the gateway, the last one counts.
    """
    removed_gateways, new_gateways = (
        {host.address: host for host in hosts if "gateway" in host.host.sources}
        for hosts in (removed_hosts, new_hosts)
    )
    return [
        (removed, new_gateways[address])
        for address, removed in removed_gateways.items()
        if address in new_gateways
    ]


def _router_change(old: _Host, new: _Host) -> Change:
    sentence = f"Another router answers at {old.row.address}: {new.mac}; it was {old.mac}."
    return change("router", old.address, (old.mac, new.mac), "warn", sentence)


def _added_and_removed(removed_hosts: list[_Host], new_hosts: list[_Host]) -> Iterator[Change]:
    for hosts, ending in (
        (removed_hosts, "is no longer on the network"),
        (new_hosts, "is new on the network"),
    ):
        for host in hosts:
            if not host.is_transient:
                states = (host.label, "") if hosts is removed_hosts else ("", host.label)
                yield change("host", host.subject, states, "muted", f"{host.label} {ending}.")
    gone_count, new_count = (
        sum(host.is_transient for host in hosts) for hosts in (removed_hosts, new_hosts)
    )
    if gone_count or new_count:
        sentence = f"Phones and unrecognised devices: {new_count} new, {gone_count} gone."
        yield change("passing-hosts", "", (str(gone_count), str(new_count)), "muted", sentence)


def _address_change(earlier: _Host, later: _Host) -> Change | None:
    is_expected = any(host.is_transient or host.is_this_machine for host in (earlier, later))
    if earlier.address == later.address or is_expected:
        return None
    states = earlier.row.address, later.row.address
    title = later.row.title if later.row.title != later.row.address else later.mac
    sentence = f"{title} has moved from {states[0]} to {states[1]}."
    return change("host-address", earlier.mac, states, "muted", sentence)


def _port_changes(
    pairs: list[_Pair], before: NetworkPayload, after: NetworkPayload
) -> Iterator[Change]:
    scanned_ports = _scanned_ports(before) & _scanned_ports(after)
    for earlier, later in pairs:
        old_ports = _open_ports(earlier.host) & scanned_ports
        new_ports = _open_ports(later.host) & scanned_ports
        opened, closed = new_ports - old_ports, old_ports - new_ports
        if not (opened or closed) or earlier.is_transient or later.is_transient:
            continue
        opened_text = f"has opened {_describe_ports(opened)}" if opened else ""
        closed_text = f"no longer answers on {_describe_ports(closed)}" if closed else ""
        sentence = f"{later.label} {' and '.join(filter(None, (opened_text, closed_text)))}."
        subject = earlier.mac or later.mac or earlier.address
        states = _join_ports(closed), _join_ports(opened)
        yield change("open-ports", subject, states, "warn" if opened else "muted", sentence)


def _describe_ports(ports: set[int]) -> str:
    """Return a text such as "ports 80, 443 and 2 more"."""
    noun = "port" if len(ports) == 1 else "ports"
    listed_ports = ", ".join(map(str, sorted(ports)[:_PORTS_LISTED_MAX]))
    other_count = len(ports) - _PORTS_LISTED_MAX
    more = f" and {other_count} more" if other_count > 0 else ""
    return f"{noun} {listed_ports}{more}"


def _join_ports(ports: set[int]) -> str:
    return " ".join(map(str, sorted(ports)))


def _open_ports(host: MapHost) -> set[int]:
    return {int(s.port) for s in host.services if s.source == "tcp" and s.reachable}


# ---------------------------------------------------------------------------- coverage


def _scanned_ports(payload: NetworkPayload) -> set[int]:
    """Return the ports that every host was scanned for; none if the scan was cut short."""
    network = payload.network_map
    return {int(port) for port in network.bounds.ports} if network and _is_whole(network) else set()


def _is_whole(network: NetworkMap) -> bool:
    is_done = network.state == "completed" and network.sources.scan.state == "succeeded"
    return is_done and not network.truncated


def _coverage(one: NetworkPayload, other: NetworkPayload) -> Callable[[MapHost], bool]:
    """Return a function that returns whether ``one`` would have discovered a host of ``other``."""
    network = one.network_map
    if network is None or one.scope != other.scope or not covers(one, other):
        return lambda _: False
    is_scanned, has_mdns = _is_whole(network), network.sources.mdns.state == "succeeded"
    networks = own_networks(network)

    def is_covered(host: MapHost) -> bool:
        if set(host.sources) == {"mdns"}:
            return has_mdns and not network.truncated
        return is_scanned and _is_within(host.address, networks)

    return is_covered


def own_networks(network: NetworkMap) -> frozenset[ipaddress.IPv4Network]:
    """Return the machine's IPv4 networks, without loopback and link-local ones."""
    networks = set()
    for link in network.interfaces:
        for address in link.addresses:
            try:
                prefix_length = int(address.prefix_length)
                own_network = ipaddress.IPv4Network((address.address, prefix_length), strict=False)
            except ValueError:
                continue
            if not (own_network.is_loopback or own_network.is_link_local):
                networks.add(own_network)
    return frozenset(networks)


def _is_within(address: str, networks: frozenset[ipaddress.IPv4Network]) -> bool:
    """Return whether an address is in one of the networks, or is not an IPv4 address."""
    ip = parse_ip(address)
    return not isinstance(ip, ipaddress.IPv4Address) or any(ip in network for network in networks)


def _not_checked(count: int, origin: str, when: str) -> str:
    verb = "was" if count == 1 else "were"
    return f"{counted(count, 'host')}{origin} {verb} not checked {when}." if count else ""
