"""Which hosts came, went, have another address or another open port."""

import ipaddress
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Final

from agent.presentation.changes.change import Change, change
from agent.presentation.changes.coverage import looked_as_far
from agent.presentation.hosts.makers import RANDOM_ADDRESS
from agent.presentation.hosts.rows import HostRow, host_rows
from agent.wire.payloads.network import MapHost, NetworkMap, NetworkPayload

_PORTS_NAMED: Final = 8


@dataclass(frozen=True, slots=True)
class _Host:
    host: MapHost
    row: HostRow

    @property
    def mac(self) -> str:
        return (self.host.mac_address or "").lower()

    @property
    def is_local(self) -> bool:
        return "local" in self.host.sources

    @property
    def is_passing(self) -> bool:
        """Tell a guest's telephone, and what nobody could name: they come and go all day."""
        if self.row.kind == "phone":
            return True
        has_name = self.row.is_recognisable and self.row.maker != RANDOM_ADDRESS
        return not (has_name or self.row.services or self.row.printers)

    @property
    def words(self) -> str:
        title = self.row.title
        return title if title == self.row.address else f"{title} ({self.row.address})"


_Pair = tuple[_Host, _Host]


def host_changes(
    before: NetworkPayload, after: NetworkPayload
) -> tuple[list[Change], tuple[str, ...]]:
    """Return the changes, and in sentences what was not looked for in one of the reports."""
    pairs, gone, new = _paired(_hosts(before), _hosts(after))
    routers, gone, new = _routers(gone, new)
    is_seen_after, is_seen_before = _sight(after, before), _sight(before, after)
    unsure_gone = [each for each in gone if not is_seen_after(each.host)]
    unsure_new = [each for each in new if not is_seen_before(each.host)]
    gone = [each for each in gone if is_seen_after(each.host) and not each.is_local]
    new = [each for each in new if is_seen_before(each.host) and not each.is_local]
    changes = [*routers, *_arrivals(gone, new)]
    changes += (c for pair in pairs if (c := _another_address(pair)) is not None)
    changes += _port_changes(pairs, before, after)
    lines = (
        _not_looked_for(len(unsure_gone), "of the earlier report", "this time"),
        _not_looked_for(len(unsure_new), "", "in the earlier report"),
    )
    return changes, tuple(filter(None, lines))


def _hosts(payload: NetworkPayload) -> list[_Host]:
    hosts = payload.network_map.hosts if payload.network_map else ()
    # The rows of what only endpoints tell of follow those of the map.
    known = (_Host(host, row) for host, row in zip(hosts, host_rows(payload), strict=False))
    # One on two interfaces is one host.
    return list({_all_of_it(each): each for each in known}.values())


# ---------------------------------------------------------------------------- which are the same


def _paired(
    before: list[_Host], after: list[_Host]
) -> tuple[list[_Pair], list[_Host], list[_Host]]:
    """Return the hosts that are in both, those of the earlier alone, and of the later alone.

    A device is known by its MAC address, unless that answers for many; by its address where one
    of the reports has no MAC of it.
    """
    pairs = [
        pair
        for ones, others in _alike(before, after, _all_of_it)
        for pair in zip(ones, others, strict=False)
    ]
    for key in (_mac, _address):
        left = _without(pairs, before, 0), _without(pairs, after, 1)
        pairs += [
            (ones[0], others[0])
            for ones, others in _alike(*left, key)
            if len(ones) == len(others) == 1 and not _contradict(ones[0], others[0])
        ]
    return pairs, _without(pairs, before, 0), _without(pairs, after, 1)


def _alike(
    before: list[_Host], after: list[_Host], key: Callable[[_Host], Hashable]
) -> Iterator[tuple[list[_Host], list[_Host]]]:
    """Yield the hosts of both reports that have one ``key``."""
    by_key: dict[Hashable, list[_Host]] = defaultdict(list)
    for each in after:
        by_key[key(each)].append(each)
    ones: dict[Hashable, list[_Host]] = defaultdict(list)
    for each in before:
        ones[key(each)].append(each)
    return ((known, by_key[at]) for at, known in ones.items() if at and at in by_key)


def _all_of_it(host: _Host) -> Hashable:
    return host.mac, host.host.address


def _mac(host: _Host) -> Hashable:
    return host.mac


def _address(host: _Host) -> Hashable:
    return host.host.address


def _contradict(one: _Host, other: _Host) -> bool:
    return bool(one.mac and other.mac and one.mac != other.mac)


def _without(pairs: list[_Pair], hosts: list[_Host], side: int) -> list[_Host]:
    paired = {id(pair[side]) for pair in pairs}
    return [each for each in hosts if id(each) not in paired]


# ---------------------------------------------------------------------------- what is said of them


def _routers(gone: list[_Host], new: list[_Host]) -> tuple[list[Change], list[_Host], list[_Host]]:
    """Return the gateways whose address another device has now, and the hosts but for these."""
    by_address = {each.host.address: each for each in new if "gateway" in each.host.sources}
    swapped = [
        (each, by_address[each.host.address])
        for each in gone
        if "gateway" in each.host.sources and each.host.address in by_address
    ]
    changes = [
        change(
            "router",
            one.host.address,
            (one.mac, other.mac),
            "warn",
            f"Another router answers at {one.row.address}: {other.mac}, before {one.mac}.",
        )
        for one, other in swapped
    ]
    return changes, _without(swapped, gone, 0), _without(swapped, new, 1)


def _arrivals(gone: list[_Host], new: list[_Host]) -> Iterator[Change]:
    for each in gone:
        if not each.is_passing:
            sentence = f"{each.words} is not seen any more."
            yield change("host", _name(each), (each.words, ""), "muted", sentence)
    for each in new:
        if not each.is_passing:
            sentence = f"{each.words} is new on the network."
            yield change("host", _name(each), ("", each.words), "muted", sentence)
    went, came = (sum(each.is_passing for each in hosts) for hosts in (gone, new))
    if went or came:
        sentence = f"Of phones and devices without a name {came} came and {went} went."
        yield change("passing-hosts", "", (str(went), str(came)), "muted", sentence)


def _name(host: _Host) -> str:
    return f"{host.mac} {host.row.address}".strip()


def _another_address(pair: _Pair) -> Change | None:
    one, other = pair
    if one.row.address == other.row.address or one.is_passing or other.is_passing:
        return None
    if one.is_local or other.is_local:
        return None
    states = one.row.address, other.row.address
    title = other.row.title if other.row.title != other.row.address else other.mac
    sentence = f"{title} has moved from {states[0]} to {states[1]}."
    return change("host-address", one.mac, states, "muted", sentence)


def _port_changes(
    pairs: list[_Pair], before: NetworkPayload, after: NetworkPayload
) -> Iterator[Change]:
    asked = _asked_ports(before) & _asked_ports(after)
    for one, other in pairs:
        was, now = _open_ports(one.host) & asked, _open_ports(other.host) & asked
        if was == now or one.is_passing or other.is_passing:
            continue
        states = _listed(was - now), _listed(now - was)
        opened = f"has opened {_ports(now - was)}" if now - was else ""
        closed = f"does not answer on {_ports(was - now)} any more" if was - now else ""
        sentence = f"{other.words} {' and '.join(filter(None, (opened, closed)))}."
        thing = one.mac or other.mac or one.host.address
        yield change("open-ports", thing, states, "warn" if opened else "muted", sentence)


def _ports(numbers: set[int]) -> str:
    rest = len(numbers) - _PORTS_NAMED
    more = f" and {rest} more" if rest > 0 else ""
    listed = ", ".join(map(str, sorted(numbers)[:_PORTS_NAMED]))
    return f"port{'s'[: len(numbers) != 1]} {listed}{more}"


def _listed(numbers: set[int]) -> str:
    return " ".join(map(str, sorted(numbers)))


def _open_ports(host: MapHost) -> set[int]:
    return {int(s.port) for s in host.services if s.source == "tcp" and s.reachable}


# ---------------------------------------------------------------------------- who looked how far


def _asked_ports(payload: NetworkPayload) -> set[int]:
    """Return the ports that were asked of every host; none where the scan was cut short."""
    found = payload.network_map
    if found is None or not _is_whole(found):
        return set()
    return {int(port) for port in found.bounds.ports}


def _is_whole(found: NetworkMap) -> bool:
    is_done = found.state == "completed" and found.sources.scan.state == "succeeded"
    return is_done and not found.truncated


def _sight(one: NetworkPayload, other: NetworkPayload) -> Callable[[MapHost], bool]:
    """Return what tells whether ``one`` would show a host that ``other`` shows."""
    found = one.network_map
    if found is None or one.scope != other.scope or not looked_as_far(one, other):
        return lambda _: False
    scanned, heard = _is_whole(found), found.sources.mdns.state == "succeeded"
    networks = own_networks(found)

    def is_seen(host: MapHost) -> bool:
        if set(host.sources) == {"mdns"}:
            return heard and not found.truncated
        return scanned and _is_within(host.address, networks)

    return is_seen


def own_networks(found: NetworkMap) -> frozenset[ipaddress.IPv4Network]:
    """Return the IPv4 networks that the machine is on, loopback and its like left out."""
    networks = set()
    for link in found.interfaces:
        for own in link.addresses:
            try:
                network = ipaddress.IPv4Network((own.address, int(own.prefix_length)), strict=False)
            except ValueError:
                continue
            if not (network.is_loopback or network.is_link_local):
                networks.add(network)
    return frozenset(networks)


def _is_within(address: str, networks: frozenset[ipaddress.IPv4Network]) -> bool:
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return True
    return known.version != 4 or any(known in network for network in networks)


def _not_looked_for(count: int, whose: str, when: str) -> str:
    if not count:
        return ""
    hosts, were = ("host", "was") if count == 1 else ("hosts", "were")
    return f"{' '.join(filter(None, (str(count), hosts, whose)))} {were} not looked for {when}."
