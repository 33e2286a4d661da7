"""Keeps the scan away from payment terminals. They get no connection and no data.

A terminal is known by its configured address and by its MAC, wherever that MAC answers. So before
the scan connects to an address on this machine's links, it resolves the address and checks the MAC.
"""

import ipaddress
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from collectors.contract import Run
from collectors.network.matching.identity import mac_in_address
from collectors.network.scan.targets import Target, Way
from collectors.shared.addresses import network_of
from collectors.shared.arp.resolver import resolve_addresses
from collectors.shared.host.local_network import LocalInterface
from collectors.shared.linux.rtnetlink import LinkNeighbour
from collectors.shared.watched_devices import PaymentTerminals


def protect_terminals(
    targets: Sequence[Target],
    terminals: PaymentTerminals,
    interfaces: Sequence[LocalInterface],
    own: Collection[str],
    macs: Mapping[str, str],
) -> tuple[Target, ...]:
    """Return the targets, changed so that the scan connects to no payment terminal.

    The address of a terminal stays a target only if the scan resolves it by ARP. Then none of its
    ports is tried. If terminals are known by MAC, each other IPv4 target on a link of
    ``interfaces`` is resolved before the scan connects to it. An IPv6 target is left out if its MAC
    is that of a terminal. ``macs`` is the neighbour table, ``own`` are this machine's addresses.
    """
    protected: list[Target] = []
    for target in targets:
        address = target.address
        if address in terminals.addresses and address not in own:
            if target.way == "arp":
                protected.append(replace(target, ports=()))
        elif not terminals.macs or address in own:
            protected.append(target)
        elif ":" in address:
            if not {mac_in_address(address), macs.get(address)} & terminals.macs:
                protected.append(target)
        elif target.way != "arp" and (link := _link_of(address, interfaces)):
            way: Way = "arp" if link.has_arp else "routed"
            protected.append(replace(target, way=way, interface_name=link.interface.name))
        else:
            protected.append(target)
    return tuple(protected)


@dataclass(frozen=True, slots=True)
class ResolvedTargets:
    """The targets that the scan may connect to, and the result of resolving addresses by ARP.

    ``answers`` has the MAC of each address that answered. ``silent`` are the targets that did not
    answer.
    """

    allowed: tuple[Target, ...]
    answers: tuple[LinkNeighbour, ...] = ()
    silent: tuple[Target, ...] = ()


def resolve_targets(
    targets: Sequence[Target], terminals: PaymentTerminals, deadline_s: float, run: Run
) -> ResolvedTargets:
    """Resolve targets on this machine's links that the scan would connect to without ARP.

    This is for systems that report no neighbour events. Raises OSError if addresses cannot be
    resolved.
    """
    on_link = {t.address for t in targets if t.way == "routed" and t.interface_name}
    if not terminals.macs or not on_link:
        return ResolvedTargets(tuple(targets))
    macs = resolve_addresses(on_link, deadline_s, run).answers
    kept = (t for t in targets if t.address not in on_link or t.address in macs)
    return ResolvedTargets(
        tuple(t for t in kept if (t.address, macs.get(t.address)) not in terminals),
        tuple(LinkNeighbour(0, address, mac, "reachable") for address, mac in macs.items()),
        tuple(t for t in targets if t.address in on_link and t.address not in macs),
    )


def _link_of(address: str, interfaces: Sequence[LocalInterface]) -> LocalInterface | None:
    parsed = ipaddress.ip_address(address)
    for link in interfaces:
        if any(parsed in network_of(known) for known in link.interface.addresses):
            return link
    return None
