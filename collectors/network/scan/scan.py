"""The scan discovers hosts and the ports that accept a connection. It sends no payload."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Literal

from collectors.contract import Run, SourceState
from collectors.network.discoveries import Discoveries
from collectors.network.scan.host_probes import TRIES
from collectors.network.scan.payment_terminals import resolve_targets
from collectors.network.scan.sockets import SOCKETS_MAX, SocketNetwork
from collectors.network.scan.sweep import Sweep, SweepResult, SweptHost
from collectors.network.scan.targets import Target
from collectors.shared.arp.proxy_arp import MacCensus, is_multicast_mac
from collectors.shared.arp.table_room import read_table_room
from collectors.shared.linux.rtnetlink import LinkNeighbour
from collectors.shared.watched_devices import NO_TERMINALS, PaymentTerminals

_SPARE_FILES = 64  # how many files the process may open besides the connections of the scan

PortState = Literal["open", "refused", "no-answer"]
"""How the connection to a port ended. "no-answer" includes ports that a firewall filters."""


@dataclass(frozen=True, slots=True)
class ScannedHost:
    """What the scan found at one address.

    ``mac_address`` is None behind proxy ARP, because the MAC is the proxy's. ``is_confirmed`` is
    False if the address is only an older entry of the neighbour table and did not answer the scan.
    ``silent_ports`` neither accepted nor refused a connection. ``latency_ms`` is the shortest
    round-trip time of the connections, or None if it was not measured.
    """

    address: str
    interface_name: str | None = None
    mac_address: str | None = None
    is_confirmed: bool = True
    latency_ms: float | None = None
    open_ports: tuple[int, ...] = ()
    refused_ports: tuple[int, ...] = ()
    silent_ports: tuple[int, ...] = ()

    @property
    def tried_ports(self) -> tuple[int, ...]:
        return (*self.open_ports, *self.refused_ports, *self.silent_ports)

    @property
    def is_answering(self) -> bool:
        """Whether any port accepted or refused a connection."""
        return bool(self.open_ports or self.refused_ports)

    def contact(self, port: int) -> PortState | None:
        """Return how the connection to a port ended, or None if it was not tried."""
        if port in self.open_ports:
            return "open"
        if port in self.refused_ports:
            return "refused"
        return "no-answer" if port in self.silent_ports else None


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The result of a scan.

    ``unanswered`` are the addresses on this machine's links that did not answer ARP. If the scan
    ended early, they include addresses that it did not try. ``proxies`` are the MACs of machines
    that answer ARP for the addresses of other hosts (proxy ARP).
    """

    hosts: tuple[ScannedHost, ...] = ()
    state: SourceState = field(default_factory=lambda: SourceState("succeeded"))
    limitations: tuple[str, ...] = ()
    unanswered: tuple[Target, ...] = ()
    proxies: frozenset[str] = frozenset()


def scan(
    targets: Sequence[Target],
    ports: Sequence[int],
    *,
    deadline_s: float,
    run: Run,
    discoveries: Discoveries,
    tries: int = TRIES,
    terminals: PaymentTerminals = NO_TERMINALS,
) -> ScanResult:
    """Scan all targets, at most until ``deadline_s`` (monotonic) or until the run is cancelled.

    ``ports`` are tried at each target that has no ports of its own. With ``tries`` of 1, no port is
    tried again. No connection is made to a host in ``terminals``. Raises OSError if no socket can
    be opened.
    """
    network, targets, network_limitations = _open_network(targets)
    with closing(network):
        resolved = resolve_targets(targets, terminals, deadline_s, run)
        run.on_cancel(network.wake)
        swept = Sweep(
            network,
            resolved.allowed,
            ports,
            discoveries=discoveries,
            sockets_max=_sockets_max(),
            tries=tries,
            room=read_table_room(),
            terminals=terminals,
        ).run(deadline_s, run)
    result = scan_result_of(swept, len(targets))
    result = with_neighbour_table(result, targets, resolved.answers)
    return replace(
        result,
        limitations=(*network_limitations, *result.limitations),
        unanswered=(*result.unanswered, *resolved.silent),
    )


def merge(first: ScanResult, second: ScanResult, tried: Sequence[Target] = ()) -> ScanResult:
    """Join two scans. The second scan tried further ports, or ports of the first scan again.

    ``tried`` are the targets of the second scan, each with its own ports. If the second scan
    succeeded and the first scan lists the host of a target, the target's ports get the state
    "no-answer", unless they accepted or refused a connection in one of the scans.
    """
    hosts = {host.address: host for host in first.hosts}
    if second.state.state == "succeeded":
        for target in tried:
            if host := hosts.get(target.address):
                silent = ScannedHost(target.address, silent_ports=target.ports or ())
                hosts[target.address] = _join(host, silent)
    for host in second.hosts:
        hosts[host.address] = _join(hosts[host.address], host) if host.address in hosts else host
    return replace(
        first,
        hosts=tuple(hosts.values()),
        unanswered=tuple(t for t in first.unanswered if t.address not in hosts),
        limitations=tuple(dict.fromkeys((*first.limitations, *second.limitations))),
    )


def _open_network(
    targets: Sequence[Target],
) -> tuple[SocketNetwork, Sequence[Target], tuple[str, ...]]:
    """Open the sockets. Returns the network, the targets to scan and the limitations.

    If neighbour events are denied, targets of the way "arp" become "routed": the scan connects to
    them without resolving them first.
    """
    if not any(target.way == "arp" for target in targets):
        return SocketNetwork(watch_neighbours=False), targets, ()
    try:
        return SocketNetwork(watch_neighbours=True), targets, ()
    except OSError as error:
        limitation = (
            f"neighbour events are denied ({error.strerror}): hosts that answer nothing but ARP"
            " are not found"
        )
        routed_targets = tuple(replace(t, way="routed") if t.way == "arp" else t for t in targets)
        return SocketNetwork(watch_neighbours=False), routed_targets, (limitation,)


def scan_result_of(swept: SweepResult, target_count: int) -> ScanResult:
    """Return the result of a scan from the result of a sweep over ``target_count`` addresses.

    An address behind proxy ARP counts as a host only if it has an open port.
    """
    hosts = [_host(host, swept.proxies) for host in swept.hosts]
    limitations = [
        f"{mac} answers ARP for {count} addresses (proxy ARP):"
        " only those with an open port are listed"
        for mac, count in swept.proxies.items()
    ]
    state = SourceState("succeeded")
    if swept.has_ended_early:
        tried = target_count - swept.untried_count
        reason = f"ended early: {tried} of {target_count} addresses were tried"
        state = SourceState("failed", reason)
    return ScanResult(
        hosts=tuple(host for host in hosts if host is not None),
        state=state,
        limitations=tuple(limitations),
        unanswered=swept.unanswered,
        proxies=frozenset(swept.proxies),
    )


def _host(swept: SweptHost, proxies: dict[str, int]) -> ScannedHost | None:
    """Return the host at an address, or None if the address has no host."""
    probes = swept.probes
    is_proxied = swept.mac_address in proxies
    is_there = bool(probes.open) if is_proxied else swept.is_confirmed or bool(swept.mac_address)
    if not is_there:
        return None
    return ScannedHost(
        address=swept.target.address,
        interface_name=swept.target.interface_name,
        mac_address=None if is_proxied else swept.mac_address,
        is_confirmed=swept.is_confirmed,
        latency_ms=swept.latency_ms,
        open_ports=tuple(sorted(probes.open)),
        refused_ports=tuple(sorted(probes.refused)),
        silent_ports=tuple(sorted(probes.silent)),
    )


def with_neighbour_table(
    result: ScanResult, targets: Sequence[Target], entries: Sequence[LinkNeighbour]
) -> ScanResult:
    """Add the MACs of ``entries`` to the hosts, and add hosts that answered only ARP.

    ``entries`` is the neighbour table, or the answers of `resolve_targets`. Only the entries of
    "routed" targets on this machine's own links are used: the scan connects to these targets
    without neighbour events.
    """
    on_link = {t.address: t for t in targets if t.way == "routed" and t.interface_name}
    by_address = {n.address: n for n in entries if n.mac_address and n.address in on_link}
    census = MacCensus()
    for entry in by_address.values():
        census.add(entry.mac_address or "", entry.address)
    hosts = {host.address: host for host in result.hosts}
    for address, entry in by_address.items():
        mac_address = entry.mac_address
        if mac_address is None or is_multicast_mac(mac_address) or census.is_proxy(mac_address):
            continue
        host = hosts.get(address) or ScannedHost(
            address, on_link[address].interface_name, is_confirmed=entry.state == "reachable"
        )
        hosts[address] = replace(host, mac_address=mac_address)
    return replace(result, hosts=tuple(hosts.values()))


def _join(first: ScannedHost, second: ScannedHost) -> ScannedHost:
    open_ports = {*first.open_ports, *second.open_ports}
    refused = {*first.refused_ports, *second.refused_ports} - open_ports
    silent = {*first.silent_ports, *second.silent_ports} - open_ports - refused
    latencies = [ms for ms in (first.latency_ms, second.latency_ms) if ms is not None]
    return replace(
        first,
        latency_ms=min(latencies, default=None),
        open_ports=tuple(sorted(open_ports)),
        refused_ports=tuple(sorted(refused)),
        silent_ports=tuple(sorted(silent)),
    )


def _sockets_max() -> int:
    """Return how many connections the limit of open files allows: 16 to `SOCKETS_MAX`."""
    try:
        import resource  # not on Windows
    except ImportError:
        return SOCKETS_MAX
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = SOCKETS_MAX if soft == resource.RLIM_INFINITY else soft - _SPARE_FILES
    return max(16, min(SOCKETS_MAX, allowed))
