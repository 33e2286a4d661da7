"""Selects the addresses at which known printers are contacted. No I/O.

A printer that is set up on this machine may be outside of the scanned networks, or use a port that
the scan did not try. A connection without payload tests whether the printer answers there.
`select_printers` is for a scan of the printers alone. The other functions are for connections and
queries after a scan.
"""

import ipaddress
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice

from collectors.contract import NetworkJob
from collectors.network.observations import KnownPrinter, SnmpTarget
from collectors.network.scan.scan import ScannedHost
from collectors.network.scan.targets import (
    Target,
    TargetSelection,
    select_own_addresses,
    select_targets,
)
from collectors.shared.addresses import (
    PRINT_PORTS,
    Network,
    is_in_networks,
    is_loopback,
    is_private,
    parse_networks,
)
from collectors.shared.host.local_network import LocalInterface

USUAL_PORTS = PRINT_PORTS[:3]
"""The ports that a scan of the printers alone tries. Later connections try them at a printer whose
port is not known."""
PRINTERS_MAX = 64
_DOUBTFUL = ("refused", "no-answer")


def select_printers(
    known: Sequence[KnownPrinter],
    addresses: Collection[str],
    interfaces: Sequence[LocalInterface],
    job: NetworkJob,
) -> TargetSelection:
    """Select the private IPv4 ``addresses`` of ``known`` printers, for a scan of nothing else.

    `printer_targets` selects the other addresses, or reports why they are not contacted. The
    ``networks`` of the selection have only addresses from the setup of the printers: if such an
    address does not answer, this is evidence that no host has the address. An address from another
    source, such as mDNS, may be in a network that this machine cannot reach.
    """
    own = {target.address for target in select_own_addresses(interfaces).targets}
    others = sorted(address for address in addresses if address not in own)
    subnets = tuple(
        f"{address}/32" for address in others if ":" not in address and is_private(address)
    )
    if not subnets:
        return TargetSelection()
    selection = select_targets(
        interfaces, subnets=subnets, exclude=job.exclude, max_hosts=job.max_hosts
    )
    targets = tuple(target for target in selection.targets if target.address not in own)
    configured_addresses = {address for printer in known for address in printer.addresses}
    networks = tuple(
        f"{target.address}/32" for target in targets if target.address in configured_addresses
    )
    return replace(selection, targets=targets, networks=networks)


def printer_targets(
    known: Sequence[KnownPrinter],
    *,
    tried: Collection[tuple[str, int]],
    own: Collection[str],
    exclude: Sequence[str],
    networks: Sequence[Network] = (),
) -> tuple[tuple[Target, ...], tuple[str, ...]]:
    """Return the targets to contact, and a limitation for each address that is left out.

    ``tried`` are the addresses and ports that the scan tried. ``own`` are this machine's addresses,
    and ``networks`` their networks: a public IPv6 address in one of them is on the link, so it may
    be contacted.
    """
    ports_by_address: dict[str, dict[int, None]] = {}
    limitations: list[str] = []
    for printer in known:
        for address in printer.addresses if printer.transport == "network" else ():
            if address in own or is_loopback(address):
                continue
            if reason := _reason_against(address, exclude, networks):
                limitations.append(f"printer {printer.name}: {address} {reason}")
                continue
            ports = ports_by_address.setdefault(address, {})
            ports.update(dict.fromkeys(_untried(printer, address, tried)))
    targets = [
        Target(a, "local", ports=tuple(ports)) for a, ports in ports_by_address.items() if ports
    ]
    if len(targets) > PRINTERS_MAX:
        left_out = len(targets) - PRINTERS_MAX
        limitations.append(
            f"addresses of printers beyond the limit of {PRINTERS_MAX}, not tried: {left_out}"
        )
    return tuple(targets[:PRINTERS_MAX]), tuple(dict.fromkeys(limitations))


def doubtful_ports(
    known: Sequence[KnownPrinter], hosts: Sequence[ScannedHost], own: Collection[str]
) -> tuple[Target, ...]:
    """Return the printers' ports that refused or did not answer although the host answers.

    Another till may be using such a port at the moment, so it is worth another try.
    """
    by_address = {host.address: host for host in hosts if host.is_answering}
    ports_by_address: dict[str, dict[int, None]] = {}
    for printer in known:
        for address in printer.addresses if printer.transport == "network" else ():
            host, port = by_address.get(address), printer.port
            if host and port and address not in own and host.contact(port) in _DOUBTFUL:
                ports_by_address.setdefault(address, {})[port] = None
    targets = (
        Target(address, "local", ports=tuple(ports)) for address, ports in ports_by_address.items()
    )
    return tuple(islice(targets, PRINTERS_MAX))


def snmp_targets(
    known: Sequence[KnownPrinter], hosts: Sequence[ScannedHost], own: Collection[str]
) -> tuple[SnmpTarget, ...]:
    """Return the printers to query by SNMP: those that answer at the address they are set up with.

    The answer becomes evidence for the port that the queue prints to. If that port is not open, the
    answer becomes evidence for an open print port of the same address.
    """
    open_ports = {host.address: host.open_ports for host in hosts if host.address not in own}
    targets: dict[str, SnmpTarget] = {}
    for printer in known:
        for address in printer.addresses if printer.transport == "network" else ():
            ports = open_ports.get(address, ())
            port = next((p for p in (printer.port, *PRINT_PORTS) if p in ports), None)
            if port is not None:
                queue = printer.queue if port == printer.port else None
                targets.setdefault(address, SnmpTarget(address, port, queue))
    return tuple(islice(targets.values(), PRINTERS_MAX))


def _untried(
    printer: KnownPrinter, address: str, tried: Collection[tuple[str, int]]
) -> tuple[int, ...]:
    if printer.port is None and any(address == other for other, _port in tried):
        return ()  # the printer's port is not known, and the scan has tried ports of this address
    ports = USUAL_PORTS if printer.port is None else (printer.port,)
    return tuple(port for port in ports if (address, port) not in tried)


def _reason_against(
    address: str, exclude: Sequence[str], networks: Sequence[Network]
) -> str | None:
    parsed = ipaddress.ip_address(address)
    is_on_link = parsed.version == 6 and is_in_networks(address, networks)
    if not is_private(address) and not is_on_link:
        return "is no private address and was not contacted"
    if parsed.is_link_local and parsed.version == 6:
        return "is a link-local IPv6 address and cannot be contacted without its interface"
    if is_in_networks(address, parse_networks(exclude)):
        return "is excluded by the configuration and was not contacted"
    return None
